// Streams of chat completions as an upstream sends them.
export const EVENT_STREAM = { status: 200, headers: { "content-type": "text/event-stream" } };
export const DONE = "data: [DONE]\n\n";

const data = (value) => `data: ${JSON.stringify(value)}\n\n`;

function chunk(choices, more = {}) {
  return data({ id: "c-31", object: "chat.completion.chunk", created: 1930478400, model: "alpha", choices, ...more });
}

const choice = (delta, finish_reason = null) => [{ index: 0, delta, finish_reason }];

export const ROLE = chunk(choice({ role: "assistant", content: "" }));
export const STOP = chunk(choice({}, "stop"));
export const text = (content) => chunk(choice({ content }));
/** The event that says what a stream cost. */
export function usage(prompt_tokens, completion_tokens) {
  const total_tokens = prompt_tokens + completion_tokens;
  return chunk([], { usage: { prompt_tokens, completion_tokens, total_tokens } });
}
export const failure = (message) => data({ error: { message, type: "server_error", param: null, code: null } });

/** A script of these entries. */
export const stream = (entries, more = {}) => ({ ...EVENT_STREAM, sse: entries, ...more });

/** A whole answer of the texts, with its end. */
export const answer = (...texts) => [ROLE, ...texts.map(text), STOP, usage(10, 5), DONE];
