// Anthropic's own package, by messages.
import { PICTURE, TOOL, asked, each } from "./common.mjs";
import { told as openaiTold } from "./openai.mjs";

/** Anthropic's API takes no call without a cap. */
const CAP = 64;
/** The words of the other adapters for why an answer ends. */
const FINISHES = { end_turn: "stop", max_tokens: "length", tool_use: "tool_calls" };

function messagesFor({ prompt, image }) {
  const source = { type: "base64", media_type: "image/png", data: PICTURE.split(",")[1] };
  const blocks = [{ type: "text", text: prompt }, { type: "image", source }];
  return [{ role: "user", content: image ? blocks : prompt }];
}

function requestFor(given) {
  const { model, tools, cap, messages, ...rest } = asked(given);
  return {
    // Models of an upstream that speaks Anthropic's API have names of their own here.
    model: `claude-${model}`,
    max_tokens: cap ?? CAP,
    messages: messages ?? messagesFor(rest),
    ...(tools && {
      tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.parameters }],
    }),
  };
}

function answerOf({ content, stop_reason: reason, usage }) {
  const text = content.filter(({ type }) => type === "text").map((block) => block.text).join("");
  const uses = content.filter(({ type }) => type === "tool_use");
  const calls = uses.map(({ name, input }) => ({ name, arguments: input }));
  return { text, finish: FINISHES[reason], usage: [usage.input_tokens, usage.output_tokens], calls, content };
}

function callerOf(client) {
  const chat = async (given) => answerOf(await client.messages.create(requestFor(given)));
  return {
    chat,
    async stream(given) {
      const running = client.messages.stream(requestFor(given));
      const pieces = await each(running, ({ type }) => type === "content_block_delta");
      return { ...answerOf(await running.finalMessage()), pieces };
    },
    giveBack(answer, text, given) {
      const { id } = answer.content.find(({ type }) => type === "tool_use");
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] };
      const messages = [...messagesFor(asked(given)), { role: "assistant", content: answer.content }, result];
      return chat({ tools: true, messages });
    },
  };
}

const TYPES = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** The type is Anthropic's, what Tollgate says beyond that stands beside it. */
const told = (error) => ({ ...openaiTold(error), ...error.error?.error, name: error.constructor.name });

const errors = {
  wrongKey: "AuthenticationError",
  unknownModel: "NotFoundError",
  badRequest: "BadRequestError",
  tooLong: "BadRequestError",
  refused: "RateLimitError",
  failed: "InternalServerError",
  brokenPlain: "InternalServerError",
  brokenStream: "APIError",
};

const habits = {
  asksForUsage: "always",
  typeOf: (status) => TYPES[status] ?? "api_error",
  upstreamHasCodes: false,
};

export async function make(load, { baseURL, package: name }) {
  const { Anthropic } = await load(name);
  // It adds `/v1` itself.
  const origin = new URL(baseURL).origin;
  const connect = (apiKey, { retries: maxRetries } = {}) =>
    callerOf(new Anthropic({ baseURL: origin, apiKey, ...(maxRetries !== undefined && { maxRetries }) }));
  return { connect, told, errors, habits };
}
