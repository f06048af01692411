// LangChain's `ChatOpenAI`.
import { PICTURE, TOOL, asked, each } from "./common.mjs";
import { errors as openaiErrors, told as openaiTold } from "./openai.mjs";

function messagesFor({ prompt, image }) {
  const pieces = [{ type: "text", text: prompt }, { type: "image_url", image_url: { url: PICTURE } }];
  return [{ role: "user", content: image ? pieces : prompt }];
}

const pairOf = (usage) => (usage ? [usage.input_tokens, usage.output_tokens] : undefined);

/** Responses say whether they are whole, and leave the rest to be seen. */
function finishOf({ response_metadata: { finish_reason: finish, status }, tool_calls: calls }) {
  if (finish) return finish;
  return status === "incomplete" ? "length" : calls.length > 0 ? "tool_calls" : "stop";
}

function answerOf(message) {
  return {
    text: message.text,
    finish: finishOf(message),
    usage: pairOf(message.usage_metadata),
    calls: message.tool_calls.map(({ name, args }) => ({ name, arguments: args })),
    message,
  };
}

function callerOf({ ChatOpenAI, OpenAIEmbeddings }, options) {
  const modelFor = ({ model, tools, cap, usage }) => {
    const own = { model, ...(cap !== undefined && { maxTokens: cap }), ...(usage && { streamUsage: true }) };
    const chat = new ChatOpenAI({ ...options, ...own });
    return tools ? chat.bindTools([{ type: "function", function: TOOL }]) : chat;
  };
  const chat = async (given) => {
    const all = asked(given);
    return answerOf(await modelFor(all).invoke(all.messages ?? messagesFor(all)));
  };
  return {
    chat,
    async stream(given) {
      const all = asked(given);
      let whole;
      const pieces = await each(await modelFor(all).stream(messagesFor(all)), (chunk) => {
        whole = whole ? whole.concat(chunk) : chunk;
        return chunk.text !== "" || chunk.tool_call_chunks.length > 0;
      });
      return { ...answerOf(whole), pieces };
    },
    async embed(texts, { model, dimensions } = asked()) {
      return { vectors: await new OpenAIEmbeddings({ ...options, model, dimensions }).embedDocuments(texts) };
    },
    giveBack(answer, text, given) {
      const result = { role: "tool", tool_call_id: answer.message.tool_calls[0].id, content: text };
      return chat({ tools: true, messages: [...messagesFor(asked(given)), answer.message, result] });
    },
  };
}

/** Where LangChain has an error of its own, the package's is its cause. */
const told = (error) => ({ ...openaiTold(error.cause ?? error), name: error.constructor.name });
const errors = { ...openaiErrors, tooLong: "ContextOverflowError" };
/** It asks for the usage of every stream, waits whole seconds, and says of no try which one it is. */
const habits = { asksForUsage: "always", waitsFor: "retryAfter", counts: false, countsEmbeddings: false };

export async function make(load, { baseURL, route }) {
  const responses = route === "responses";
  const packages = await load("@langchain/openai");
  const connect = (apiKey, { retries: maxRetries } = {}) =>
    callerOf(packages, {
      apiKey,
      configuration: { baseURL },
      ...(maxRetries !== undefined && { maxRetries }),
      ...(responses && { useResponsesApi: true }),
    });
  return { connect, told, errors, habits: { ...habits, ...(responses && { badField: "max_output_tokens" }) } };
}
