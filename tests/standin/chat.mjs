// `POST /v1/chat/completions`, in OpenAI's shape.
import { textOf } from "./completion.mjs";

export const wants = "a model and messages";
export const isWhole = ({ messages }) => messages?.length > 0;
export const ending = "data: [DONE]\n\n";

export const conversation = ({ messages, tools, tool_choice: choice, n, ...asked }) => ({
  texts: messages.map(({ content }) => textOf(content)),
  tools: tools?.map((tool) => tool.function),
  choice,
  answered: messages.at(-1).role === "tool",
  cap: asked.max_completion_tokens ?? asked.max_tokens,
  n,
});

export const usageOf = ({ read, written }) => ({
  prompt_tokens: read,
  completion_tokens: written,
  total_tokens: read + written,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
});

const finishOf = ({ cut, tool }) => (cut ? "length" : tool ? "tool_calls" : "stop");
const callOf = ({ name }) => ({ id: `call_${name}`, type: "function", function: { name } });
const envelope = (object, model) => ({ id: "chatcmpl-standin", object, created: 1_760_000_000, model });
const choices = (n, choice) => Array.from({ length: n }, (_, index) => ({ index, ...choice }));

/** The body of a plain answer. */
export function plain({ model }, answer, withUsage) {
  const text = answer.pieces.join("");
  const call = answer.tool && callOf(answer.tool);
  const said = call
    ? { content: null, tool_calls: [{ ...call, function: { ...call.function, arguments: text } }] }
    : { content: text };
  const message = { role: "assistant", refusal: null, ...said };
  return {
    ...envelope("chat.completion", model),
    choices: choices(answer.n, { message, logprobs: null, finish_reason: finishOf(answer) }),
    ...(withUsage && { usage: usageOf(answer) }),
  };
}

/** The events of a streamed answer; the usage comes last if it is asked for. */
export function* events({ model, stream_options: options }, answer, usageIsTold) {
  const withUsage = options?.include_usage === true && usageIsTold;
  const head = envelope("chat.completion.chunk", model);
  const event = (delta, finish_reason = null) => ({
    ...head,
    choices: choices(answer.n, { delta, logprobs: null, finish_reason }),
    ...(withUsage && { usage: null }),
  });
  const call = answer.tool && callOf(answer.tool);
  const [opening, next] = call
    ? [
        { content: null, tool_calls: [{ index: 0, ...call, function: { ...call.function, arguments: "" } }] },
        (text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] }),
      ]
    : [{ content: "" }, (content) => ({ content })];
  yield event({ role: "assistant", ...opening });
  for (const piece of answer.pieces) yield event(next(piece));
  yield event({}, finishOf(answer));
  if (withUsage) yield { ...head, choices: [], usage: usageOf(answer) };
}
