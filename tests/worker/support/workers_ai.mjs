// What models behind the platform's AI binding answer, by family, as the public documentation and Cloudflare's own
// client (workers-ai-provider) show it: plain, and as a stream. Every answer is "Volga, Niger." of 10 tokens read and 5
// written.
import { DONE, EVENT_STREAM, answer } from "./sse.mjs";

export const CONTENT = "Volga, Niger.";
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

const JSON_TYPE = { "content-type": "application/json", "cf-ai-req-id": "req-31" };
export const plain = (body) => ({ status: 200, headers: JSON_TYPE, body });
export const events = (list, more = {}) => ({
  ...EVENT_STREAM,
  sse: list.map((event) => (typeof event === "string" ? event : `data: ${JSON.stringify(event)}\n\n`)),
  ...more,
});
/** The platform's way of saying no. */
export const fails = (status, body) => ({ status, headers: JSON_TYPE, body });

const completion = (message, more = {}) => ({
  id: "chatcmpl-9",
  object: "chat.completion",
  created: 1930478400,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", logprobs: null, ...more }],
  usage: USAGE,
});

/** Each: the model, its plain answer, its stream, and whether the two are OpenAI's already. */
export const FAMILIES = {
  "Llama 3.3": {
    model: "@cf/meta/llama-3.3-70b-instruct-fp8-fast",
    plain: { response: CONTENT, tool_calls: [], usage: USAGE },
    stream: [
      { response: "Volga", p: "abdefghij" },
      { response: ", Niger.", tool_calls: [], p: "ab" },
      { response: "", usage: USAGE, p: "abd" },
      DONE,
    ],
  },
  "Llama 3.1, whose stream has its usage on every event": {
    model: "@cf/meta/llama-3.1-8b-instruct-fp8",
    plain: { response: CONTENT, usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 0 } } },
    stream: [
      { response: "Volga", usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } },
      { response: ", Niger.", usage: USAGE },
      { response: null, usage: USAGE },
      DONE,
    ],
  },
  "Llama 4 Scout, in the envelope of the REST API": {
    model: "@cf/meta/llama-4-scout-17b-16e-instruct",
    plain: { result: { response: CONTENT, tool_calls: null, usage: USAGE }, success: true, errors: [], messages: [] },
    // It ends with its usage and has no end marker.
    stream: [{ response: CONTENT }, { response: "", tool_calls: [], usage: USAGE }],
  },
  "Mistral Small": {
    model: "@cf/mistralai/mistral-small-3.1-24b-instruct",
    plain: { response: CONTENT, usage: USAGE, finish_reason: "stop" },
    stream: [{ response: CONTENT }, { response: "", finish_reason: "stop" }, { usage: USAGE }, DONE],
  },
  "Qwen 3": {
    model: "@cf/qwen/qwen3-30b-a3b-fp8",
    plain: completion({ content: CONTENT, reasoning_content: null, tool_calls: [] }),
    stream: answer("Volga", ", Niger."),
    own: true,
  },
  "GPT-OSS": {
    model: "@cf/openai/gpt-oss-120b",
    plain: completion({ content: CONTENT, reasoning_content: "Rivers." }, { stop_reason: null }),
    stream: answer(CONTENT),
    own: true,
  },
  "GLM": {
    model: "@cf/zai-org/glm-4.7-flash",
    plain: completion({ content: CONTENT }),
    stream: answer("Volga", ", ", "Niger."),
    own: true,
  },
};

export const TOOL = { type: "function", function: { name: "river", parameters: { type: "object" } } };
const ARGUMENTS = { country: "Mali", length: 4180.0 };

/** Each: how calls of tools come, plain and streamed. */
export const TOOL_CALLS = {
  "flat, with arguments as an object": {
    plain: { response: null, tool_calls: [{ name: "river", arguments: ARGUMENTS }], usage: USAGE },
    stream: [
      { response: "", tool_calls: [{ name: "river", arguments: ARGUMENTS }] },
      { response: "", usage: USAGE },
      DONE,
    ],
  },
  "in OpenAI's shape, with arguments in pieces": {
    plain: {
      response: "",
      tool_calls: [
        { id: "c1", type: "function", function: { name: "river", arguments: JSON.stringify(ARGUMENTS) } },
      ],
      usage: USAGE,
    },
    stream: [
      { tool_calls: [{ id: "c1", type: "function", index: 0, function: { name: "river" } }] },
      { tool_calls: [{ index: 0, function: { arguments: JSON.stringify(ARGUMENTS).slice(0, 9) } }] },
      { tool_calls: [{ index: 0, function: { arguments: JSON.stringify(ARGUMENTS).slice(9) } }] },
      { tool_calls: [{ id: null, type: null, index: 0, function: { name: null, arguments: "" } }] },
      { response: "", usage: USAGE },
      DONE,
    ],
  },
};
export const CALLED = ARGUMENTS;

/** The chunks of a stream in OpenAI's shape, put together as a client does it. */
export function together(body) {
  const text = body.toString();
  const data = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json));
  const done = text.endsWith(DONE);
  const made = { text: "", calls: [], ids: new Set(), reasons: [], usage: null, done };
  for (const { id, object, choices, usage } of data) {
    made.ids.add(`${object} ${id}`);
    made.usage = usage ?? made.usage;
    for (const { delta, finish_reason } of choices) {
      made.text += delta.content ?? "";
      if (finish_reason) made.reasons.push(finish_reason);
      for (const { index, id: own, function: called } of delta.tool_calls ?? []) {
        const call = (made.calls[index] ??= { id: own, name: called.name, arguments: "" });
        call.arguments += called.arguments ?? "";
      }
    }
  }
  return made;
}
