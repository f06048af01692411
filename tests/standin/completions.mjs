// `POST /v1/completions`, OpenAI's older one: a prompt instead of messages, and every prompt of a list is answered `n`
// times.
import { usageOf } from "./chat.mjs";

/** What the API takes if the request says nothing. */
const CAP = 16;

export const wants = "a model and a prompt";
export const isWhole = ({ prompt }) => prompt?.length > 0;
export const ending = "data: [DONE]\n\n";

/** A prompt is a text or a list of tokens, of which there are words here. */
const textOf = (prompt) => (typeof prompt === "string" ? prompt : prompt.map((token) => `<${token}> `).join(""));
const isOne = (prompt) => typeof prompt === "string" || typeof prompt[0] === "number";

export function conversation({ prompt, max_tokens: cap, n = 1 }) {
  const prompts = isOne(prompt) ? [prompt] : prompt;
  return { texts: prompts.map(textOf), cap: cap ?? CAP, n: n * prompts.length };
}

const envelope = (model) => ({ id: "cmpl-standin", object: "text_completion", created: 1_760_000_000, model });
const finishOf = ({ cut }) => (cut ? "length" : "stop");
const choices = (n, text, finish_reason) =>
  Array.from({ length: n }, (_, index) => ({ text, index, logprobs: null, finish_reason }));

/** The body of a plain answer. */
export const plain = ({ model }, answer, withUsage) => ({
  ...envelope(model),
  choices: choices(answer.n, answer.pieces.join(""), finishOf(answer)),
  ...(withUsage && { usage: usageOf(answer) }),
});

/** The events of a streamed answer; the usage comes last if it is asked for. */
export function* events({ model, stream_options: options }, answer, usageIsTold) {
  const withUsage = options?.include_usage === true && usageIsTold;
  const rest = withUsage ? { usage: null } : {};
  for (const piece of answer.pieces) yield { ...envelope(model), choices: choices(answer.n, piece, null), ...rest };
  yield { ...envelope(model), choices: choices(answer.n, "", finishOf(answer)), ...rest };
  if (withUsage) yield { ...envelope(model), choices: [], usage: usageOf(answer) };
}
