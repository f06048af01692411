// What the stand-in says: a pure function of the request, so that every run says the same. Each route reads its own
// kind of request into a conversation and writes the answer in its own shape.

const OPENING = "You said:";

/** Splits text into what counts as tokens here: a word with the white space after it. */
export const tokensOf = (text) => text.match(/\S+\s*|\s+/g) ?? [];
/** The same for JSON, so that the arguments of a tool call arrive in pieces too. */
const tokensOfJson = (json) => json.match(/[^,:]+[,:]*/g) ?? [];

/** The text of a message's content: a string, or parts of which an image is named. */
export function textOf(content) {
  if (typeof content === "string") return content;
  const words = (part) => part.text ?? (part.type?.includes("image") ? "[image]" : "");
  return (content ?? []).map(words).join(" ");
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

/**
 * The tool to call, if there is one and the last word is not its answer yet. `choice` is how every API writes it: a
 * word, or an object that may name the tool.
 */
function toolOf({ tools, choice, answered }) {
  if (!tools?.length || answered || choice === "none" || choice?.type === "none") return undefined;
  const wanted = choice?.function?.name ?? choice?.name;
  return tools.find(({ name }) => !wanted || name === wanted);
}

/**
 * The answer to a conversation: `pieces` of text, or of the arguments for the `tool`, whether the cap `cut` it, and the
 * tokens `read` and `written`. Tokens are words, so a cap is easy to follow with the eye.
 *
 * Of the conversation: `texts`, the last of which is answered, `tools` as `{ name, parameters }` with a `choice`,
 * `answered` if the last text is what a tool gave, the `cap`, and how many answers (`n`).
 */
export function complete(conversation) {
  const { texts, cap, n = 1 } = conversation;
  const tool = toolOf(conversation);
  const whole = tool
    ? tokensOfJson(JSON.stringify(example(tool.parameters ?? { type: "object" })))
    : tokensOf(`${OPENING} ${texts.at(-1) || "nothing"}`);
  const pieces = whole.slice(0, cap ?? Infinity);
  return {
    pieces,
    tool,
    cut: pieces.length < whole.length,
    n,
    read: texts.reduce((sum, text) => sum + tokensOf(text).length, 0),
    written: pieces.length * n,
  };
}
