// The AI SDK: `generateText` and `streamText` over a provider's model.
import { PICTURE, TOOL, asked, each } from "./common.mjs";

/** The SDK's own words. */
const FINISHES = { "tool-calls": "tool_calls" };

function messagesFor({ prompt, image }) {
  const picture = { type: "file", mediaType: "image/png", data: PICTURE };
  return [{ role: "user", content: [{ type: "text", text: prompt }, ...(image ? [picture] : [])] }];
}

const pairOf = ({ inputTokens, outputTokens }) =>
  inputTokens === undefined ? undefined : [inputTokens, outputTokens];

function answerOf({ text, finishReason, usage, toolCalls, response }) {
  const calls = toolCalls.map(({ toolName: name, input }) => ({ name, arguments: input }));
  const finish = FINISHES[finishReason] ?? finishReason;
  return { text, finish, usage: pairOf(usage), calls, toolCalls, messages: response.messages };
}

/** A caller over `modelFor(given)`, which makes a model and the options of a call, and `vectorsBy(name)`. */
function callerOf({ generateText, streamText, jsonSchema, embedMany }, { modelFor, vectorsBy }, maxRetries) {
  const requestFor = (given) => {
    const all = asked(given);
    const tools = { [TOOL.name]: { description: TOOL.description, inputSchema: jsonSchema(TOOL.parameters) } };
    const { model, ...options } = modelFor(all);
    return {
      model,
      messages: all.messages ?? messagesFor(all),
      ...(all.tools && { tools }),
      ...(all.cap > 0 && { maxOutputTokens: all.cap }),
      ...(maxRetries !== undefined && { maxRetries }),
      ...options,
    };
  };
  const chat = async (given) => answerOf(await generateText(requestFor(given)));
  return {
    chat,
    async stream(given) {
      // What it would print otherwise is thrown below.
      const result = streamText({ ...requestFor(given), onError() {} });
      const pieces = await each(result.fullStream, ({ type, error }) => {
        if (type === "error") throw error;
        return type === "text-delta" || type === "tool-input-delta";
      });
      const [text, finishReason, usage, toolCalls, response] = await Promise.all([
        result.text,
        result.finishReason,
        result.usage,
        result.toolCalls,
        result.response,
      ]);
      return { ...answerOf({ text, finishReason, usage, toolCalls, response }), pieces };
    },
    async embed(texts, { model: name, dimensions } = asked()) {
      const { embeddings, usage } = await embedMany({
        model: vectorsBy(name),
        values: texts,
        ...(maxRetries !== undefined && { maxRetries }),
        ...(dimensions && { providerOptions: { openai: { dimensions }, tollgate: { dimensions } } }),
      });
      return { vectors: embeddings, tokens: usage.tokens };
    },
    giveBack(answer, text, given) {
      const [{ toolCallId, toolName }] = answer.toolCalls;
      const result = { type: "tool-result", toolCallId, toolName, output: { type: "text", value: text } };
      const messages = [...messagesFor(asked(given)), ...answer.messages, { role: "tool", content: [result] }];
      return chat({ tools: true, messages });
    },
  };
}

/**
 * After its last try the SDK throws an error about all of them. In a stream it hands on what came, version 6 as it is,
 * version 7 in an error of its own, both in an error of types what responses do not define.
 */
function told(thrown) {
  const error = thrown.lastError ?? thrown;
  const { type, code, param } = error.data?.error ?? error.data ?? error.value?.error ?? error;
  const name = error.name ?? error.constructor.name;
  return { name, status: error.statusCode, type, code, param, message: error.message };
}

const errorsWith = (brokenStream) => ({
  wrongKey: "AI_APICallError",
  unknownModel: "AI_APICallError",
  badRequest: "AI_APICallError",
  tooLong: "AI_APICallError",
  refused: "AI_APICallError",
  failed: "AI_APICallError",
  brokenPlain: "AI_APICallError",
  brokenStream,
});

/** The SDK reads neither `x-should-retry` nor what a refusal says: it comes back after waits of its own. */
const habits = { comesBackAfter: [2_000, 4_000], counts: false };

const KINDS = {
  /** `openai.chat(model)`, which always asks for the usage of a stream. */
  openai({ createOpenAI }, options) {
    const openai = createOpenAI(options);
    const modelFor = ({ model, cap }) => ({
      model: openai.chat(model),
      // The SDK itself refuses a cap of zero.
      ...(cap === 0 && { providerOptions: { openai: { maxCompletionTokens: cap } } }),
    });
    const vectorsBy = (name) => openai.embedding(name);
    return { modelFor, vectorsBy, habits: { asksForUsage: "always", badField: "max_completion_tokens" } };
  },
  /** `openai(model)`, which goes to responses. */
  responses({ createOpenAI }, options) {
    const openai = createOpenAI(options);
    const modelFor = ({ model, cap }) => ({
      model: openai(model),
      // There is no way to send a cap of zero; what no plan here allows is as bad.
      ...(cap === 0 && { tools: { web_search: openai.tools.webSearch({}) } }),
    });
    const bad = { badField: "tools[0].type", badCode: "unsupported_parameter" };
    return { modelFor, habits: { asksForUsage: "always", ...bad } };
  },
  compatible({ createOpenAICompatible }, options) {
    const make = (includeUsage) => createOpenAICompatible({ ...options, name: "tollgate", includeUsage });
    const modelFor = ({ model, cap, usage }) => ({
      model: make(usage)(model),
      ...(cap === 0 && { providerOptions: { tollgate: { max_completion_tokens: cap } } }),
    });
    const vectorsBy = (name) => make().textEmbeddingModel(name);
    return { modelFor, vectorsBy, habits: { badField: "max_completion_tokens" } };
  },
};

export async function make(load, { baseURL, package: name, provider, kind, brokenStream }) {
  const [ai, providers] = await Promise.all([load(name), load(provider)]);
  const using = (apiKey) => KINDS[kind](providers, { baseURL, apiKey });
  const connect = (apiKey, { retries } = {}) => callerOf(ai, using(apiKey), retries);
  return { connect, told, errors: errorsWith(brokenStream), habits: { ...habits, ...using("").habits } };
}
