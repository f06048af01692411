// `POST /v1/embeddings`, in OpenAI's shape: a vector for every input.
import { createHash } from "node:crypto";
import { tokensOf } from "./completion.mjs";

/** How long a vector is if the request says nothing. */
const DIMENSIONS = 8;

export const wants = "a model and an input";
export const isWhole = ({ input }) => input?.length > 0;

/** An input is a text, a list of tokens, or a list of either. */
const inputsOf = (input) => (typeof input === "string" || typeof input[0] === "number" ? [input] : input);
const lengthOf = (input) => (typeof input === "string" ? tokensOf(input).length : input.length);

/** A vector of length 1 that is always the same for the same input. */
function vectorOf(input, dimensions) {
  const at = (place) => createHash("sha256").update(`${place} ${JSON.stringify(input)}`).digest().readInt32LE() || 1;
  const raw = Array.from({ length: dimensions }, (_, place) => at(place));
  const length = Math.hypot(...raw);
  return raw.map((value) => Math.fround(value / length));
}

const asBase64 = (vector) => Buffer.from(Float32Array.from(vector).buffer).toString("base64");

/** The body of the answer. */
export function embed({ model, input, dimensions = DIMENSIONS, encoding_format: format }, withUsage) {
  const inputs = inputsOf(input);
  const tokens = inputs.reduce((sum, one) => sum + lengthOf(one), 0);
  const data = inputs.map((one, index) => {
    const vector = vectorOf(one, dimensions);
    return { object: "embedding", index, embedding: format === "base64" ? asBase64(vector) : vector };
  });
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return { object: "list", data, model, ...(withUsage && { usage }) };
}
