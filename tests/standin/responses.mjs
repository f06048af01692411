// `POST /v1/responses`, in OpenAI's shape: items instead of messages, named events, and usage in the last of them.
import { textOf } from "./completion.mjs";

export const wants = "a model and an input";
export const isWhole = ({ input }) => input?.length > 0;
/** The last event is the end; there is no other mark. */
export const ending = "";

const itemsOf = (input) => (typeof input === "string" ? [{ role: "user", content: input }] : input);

export function conversation({ instructions, input, tools, tool_choice: choice, max_output_tokens: cap }) {
  const items = itemsOf(input);
  return {
    texts: [...(instructions ? [instructions] : []), ...items.map((item) => textOf(item.output ?? item.content))],
    tools: tools?.filter(({ type }) => type === "function"),
    choice,
    answered: items.at(-1).type === "function_call_output",
    cap,
  };
}

const usageOf = ({ read, written }) => ({
  input_tokens: read,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: written,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: read + written,
});

const part = (text) => ({ type: "output_text", text, annotations: [], logprobs: [] });

/** The one item of an answer, in the state that it has when it has said `text`. */
function itemOf({ tool }, status, text) {
  if (tool) {
    const call_id = `call_${tool.name}`;
    return { type: "function_call", id: "fc_standin", call_id, name: tool.name, arguments: text, status };
  }
  const content = status === "in_progress" ? [] : [part(text)];
  return { type: "message", id: "msg_standin", role: "assistant", status, content };
}

const statusOf = ({ cut }) => (cut ? "incomplete" : "completed");

function envelope(asked, status, output, usage) {
  return {
    id: "resp_standin",
    object: "response",
    created_at: 1_760_000_000,
    status,
    error: null,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: asked.instructions ?? null,
    max_output_tokens: asked.max_output_tokens ?? null,
    model: asked.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: asked.store ?? true,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: asked.tool_choice ?? "auto",
    tools: asked.tools ?? [],
    top_p: 1,
    truncation: "disabled",
    usage,
    metadata: asked.metadata ?? {},
  };
}

function finished(asked, answer, withUsage) {
  const status = statusOf(answer);
  const item = itemOf(answer, status, answer.pieces.join(""));
  return envelope(asked, status, [item], withUsage ? usageOf(answer) : null);
}

/** The body of a plain answer. */
export const plain = finished;

/** The events between the opening and the end: how the one item comes to be. */
function* growth(answer) {
  const [text, place] = [answer.pieces.join(""), { output_index: 0 }];
  const item = itemOf(answer, statusOf(answer), text);
  yield { type: "response.output_item.added", ...place, item: itemOf(answer, "in_progress", "") };
  const at = { item_id: item.id, ...place };
  if (answer.tool) {
    for (const delta of answer.pieces) yield { type: "response.function_call_arguments.delta", ...at, delta };
    yield { type: "response.function_call_arguments.done", ...at, name: answer.tool.name, arguments: text };
  } else {
    const inside = { ...at, content_index: 0 };
    yield { type: "response.content_part.added", ...inside, part: part("") };
    for (const delta of answer.pieces) yield { type: "response.output_text.delta", ...inside, delta, logprobs: [] };
    yield { type: "response.output_text.done", ...inside, text, logprobs: [] };
    yield { type: "response.content_part.done", ...inside, part: part(text) };
  }
  yield { type: "response.output_item.done", ...place, item };
}

/** The events of a streamed answer, each named by its type. */
export function* events(asked, answer, withUsage) {
  const opening = envelope(asked, "in_progress", [], null);
  const all = [
    { type: "response.created", response: opening },
    { type: "response.in_progress", response: opening },
    ...growth(answer),
    { type: `response.${statusOf(answer)}`, response: finished(asked, answer, withUsage) },
  ];
  for (const [sequence_number, event] of all.entries()) yield { ...event, sequence_number };
}
