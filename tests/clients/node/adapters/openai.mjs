// The openai package, by chat completions.
import { PICTURE, TOOL, asked, each } from "./common.mjs";

function messagesFor({ prompt, image }) {
  const pieces = [{ type: "text", text: prompt }, { type: "image_url", image_url: { url: PICTURE } }];
  return [{ role: "user", content: image ? pieces : prompt }];
}

function requestFor(given) {
  const { model, tools, cap, usage, ...rest } = asked(given);
  return {
    model,
    messages: rest.messages ?? messagesFor(rest),
    ...(tools && { tools: [{ type: "function", function: TOOL }] }),
    ...(cap !== undefined && { max_tokens: cap }),
    ...(usage !== undefined && { stream_options: { include_usage: usage } }),
  };
}

const pairOf = (usage) => (usage ? [usage.prompt_tokens, usage.completion_tokens] : undefined);
const parsed = (call) => ({ name: call.name, arguments: JSON.parse(call.arguments) });

function callerOf(client) {
  const chat = async (given) => {
    const { choices, usage } = await client.chat.completions.create(requestFor(given));
    const { message, finish_reason: finish } = choices[0];
    const calls = (message.tool_calls ?? []).map((call) => parsed(call.function));
    return { text: message.content ?? "", finish, usage: pairOf(usage), calls, message };
  };
  return {
    chat,
    async stream(given) {
      const [calls, answer] = [[], { text: "" }];
      const stream = await client.chat.completions.create({ ...requestFor(given), stream: true });
      const pieces = await each(stream, ({ choices, usage }) => {
        if (usage) answer.usage = pairOf(usage);
        // A program that has asked for usage has to expect a chunk without choices; nobody else has to.
        if (given?.usage && choices.length === 0) return false;
        const { delta, finish_reason: finish } = choices[0];
        answer.text += delta.content ?? "";
        if (finish) answer.finish = finish;
        for (const { index, function: part } of delta.tool_calls ?? []) {
          calls[index] ??= { name: part.name, arguments: "" };
          calls[index].arguments += part.arguments;
        }
        return Boolean(delta.content || delta.tool_calls);
      });
      return { ...answer, pieces, calls: calls.map(parsed) };
    },
    async embed(input, { model, dimensions } = asked()) {
      const { data, usage } = await client.embeddings.create({ model, input, ...(dimensions && { dimensions }) });
      return { vectors: data.map(({ embedding }) => embedding), tokens: usage.prompt_tokens };
    },
    giveBack(answer, text, given) {
      const result = { role: "tool", tool_call_id: answer.message.tool_calls[0].id, content: text };
      return chat({ tools: true, messages: [...messagesFor(asked(given)), answer.message, result] });
    },
  };
}

/** What a program reads of the package's errors, whatever was called. */
export function told(error) {
  const { status, type, code, param, message } = error;
  return { name: error.constructor.name, status, type, code, param, message };
}

export const errors = {
  wrongKey: "AuthenticationError",
  unknownModel: "NotFoundError",
  badRequest: "BadRequestError",
  tooLong: "BadRequestError",
  refused: "RateLimitError",
  failed: "InternalServerError",
  brokenPlain: "InternalServerError",
  brokenStream: "APIError",
};

export const optionsOf = (baseURL, apiKey, { retries: maxRetries } = {}) =>
  ({ baseURL, apiKey, ...(maxRetries !== undefined && { maxRetries }) });

export async function make(load, { baseURL, package: name }) {
  const { OpenAI } = await load(name);
  const connect = (apiKey, options) => callerOf(new OpenAI(optionsOf(baseURL, apiKey, options)));
  return { connect, told, errors };
}
