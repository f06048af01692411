// `POST /v1/messages`, in Anthropic's shape: blocks instead of a text, named events, input counted at the beginning and
// output at the end, and errors of its own.
import { textOf } from "./completion.mjs";

export const wants = "a model, messages and max_tokens";
export const isWhole = ({ messages, max_tokens: cap }) => messages?.length > 0 && cap > 0;
/** The last event is the end; there is no other mark. */
export const ending = "";

const ERROR_TYPES = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** An error's body. */
export const errorBody = (status, message) => ({
  type: "error",
  error: { type: ERROR_TYPES[status] ?? "api_error", message },
  request_id: "req_standin",
});

const isResult = ({ type }) => type === "tool_result";

/** A message's text; a tool's result stands in a block of its own. */
function textOfMessage({ content }) {
  const result = typeof content === "string" ? undefined : content.find(isResult);
  return textOf(result ? result.content : content);
}

export function conversation({ system, messages, tools, tool_choice: choice, max_tokens: cap }) {
  const { content } = messages.at(-1);
  return {
    texts: [...(system ? [textOf(system)] : []), ...messages.map(textOfMessage)],
    tools: tools?.map(({ name, input_schema: parameters }) => ({ name, parameters })),
    choice,
    answered: typeof content !== "string" && content.some(isResult),
    cap,
  };
}

const inputOf = ({ read }) => ({ input_tokens: read, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 });
const stopOf = ({ cut, tool }) => (cut ? "max_tokens" : tool ? "tool_use" : "end_turn");
const blockOf = ({ tool }, text) =>
  tool
    ? { type: "tool_use", id: `toolu_${tool.name}`, name: tool.name, input: text === "" ? {} : parsed(text) }
    : { type: "text", text };

/** The arguments of a call; cut off they are no JSON, and the API gives what it has of them. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

const envelope = (model, content, stop_reason, usage) => ({
  id: "msg_standin",
  type: "message",
  role: "assistant",
  model,
  content,
  stop_reason,
  stop_sequence: null,
  ...(usage && { usage }),
});

/** The body of a plain answer. */
export function plain({ model }, answer, withUsage) {
  const usage = withUsage && { ...inputOf(answer), output_tokens: answer.written };
  return envelope(model, [blockOf(answer, answer.pieces.join(""))], stopOf(answer), usage);
}

/** The events of a streamed answer, each named by its type. */
export function* events({ model }, answer, withUsage) {
  const usage = withUsage && { ...inputOf(answer), output_tokens: 1 };
  yield { type: "message_start", message: envelope(model, [], null, usage) };
  yield { type: "content_block_start", index: 0, content_block: blockOf(answer, "") };
  yield { type: "ping" };
  for (const piece of answer.pieces) {
    const delta = answer.tool ? { type: "input_json_delta", partial_json: piece } : { type: "text_delta", text: piece };
    yield { type: "content_block_delta", index: 0, delta };
  }
  yield { type: "content_block_stop", index: 0 };
  const delta = { stop_reason: stopOf(answer), stop_sequence: null };
  yield { type: "message_delta", delta, ...(withUsage && { usage: { output_tokens: answer.written } }) };
  yield { type: "message_stop" };
}
