// What the stand-in answers: a pure function of the request, so that every run says the same.

const OPENING = "You said:";

/** Splits text into what counts as tokens here: a word with the white space after it. */
const tokensOf = (text) => text.match(/\S+\s*|\s+/g) ?? [];
/** The same for JSON, so that the arguments of a tool call arrive in pieces too. */
const tokensOfJson = (json) => json.match(/[^,:]+[,:]*/g) ?? [];

function textOf({ content }) {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join(" ");
}

/** A value that fits a JSON schema well enough for a caller that parses the arguments of a tool call. */
function example(schema = {}) {
  if (schema.enum) return schema.enum[0];
  switch (schema.type) {
    case "object":
      return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, of]) => [name, example(of)]));
    case "array":
      return [example(schema.items)];
    case "integer":
    case "number":
      return 1;
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return "example";
  }
}

/** The tool to call, if the request offers one and has not had its answer yet. */
function toolOf({ tools, tool_choice: choice, messages }) {
  if (!tools?.length || choice === "none" || messages.at(-1).role === "tool") return undefined;
  const wanted = choice?.function?.name;
  return tools.find((tool) => !wanted || tool.function?.name === wanted)?.function;
}

/**
 * The answer to a request: `pieces` of text, or the `call` of a tool, and why it ends.
 * Tokens are words, so a request's cap is easy to follow with the eye.
 */
export function complete(request) {
  const prompt = request.messages.map(textOf);
  const tool = toolOf(request);
  const whole = tool
    ? tokensOfJson(JSON.stringify(example(tool.parameters ?? { type: "object" })))
    : tokensOf(`${OPENING} ${prompt.at(-1) || "nothing"}`);
  const cap = request.max_completion_tokens ?? request.max_tokens ?? Infinity;
  const pieces = whole.slice(0, cap);
  const n = request.n ?? 1;
  const promptTokens = prompt.reduce((sum, text) => sum + tokensOf(text).length, 0);
  return {
    pieces,
    call: tool && { id: `call_${tool.name}`, type: "function", function: { name: tool.name } },
    finish: pieces.length < whole.length ? "length" : tool ? "tool_calls" : "stop",
    n,
    usage: usageOf(promptTokens, pieces.length * n),
  };
}

function usageOf(prompt, completion) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

const envelope = (object, model) => ({ id: "chatcmpl-standin", object, created: 1_760_000_000, model });
const choices = (n, choice) => Array.from({ length: n }, (_, index) => ({ index, ...choice }));

/** The body of a plain answer. */
export function plainBody(model, { pieces, call, finish, n, usage }) {
  const text = pieces.join("");
  const said = call
    ? { content: null, tool_calls: [{ ...call, function: { ...call.function, arguments: text } }] }
    : { content: text };
  const message = { role: "assistant", refusal: null, ...said };
  return {
    ...envelope("chat.completion", model),
    choices: choices(n, { message, logprobs: null, finish_reason: finish }),
    usage,
  };
}

/** The events of a streamed answer, each as the JSON of one `data:` line; the usage comes last if `withUsage`. */
export function* streamEvents(model, { pieces, call, finish, n, usage }, withUsage) {
  const head = envelope("chat.completion.chunk", model);
  const event = (delta, finish_reason = null) =>
    ({ ...head, choices: choices(n, { delta, logprobs: null, finish_reason }), ...(withUsage && { usage: null }) });
  const [opening, next] = call
    ? [
        { content: null, tool_calls: [{ index: 0, ...call, function: { ...call.function, arguments: "" } }] },
        (text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] }),
      ]
    : [{ content: "" }, (content) => ({ content })];
  yield event({ role: "assistant", ...opening });
  for (const piece of pieces) yield event(next(piece));
  yield event({}, finish);
  if (withUsage) yield { ...head, choices: [], usage };
}
