// What the adapters have in common: the tool and the picture that they send, and how a stream is gathered.

export const MODEL = "demo";
export const PROMPT = "hi there";
export const TOOL = {
  name: "weather",
  description: "How the weather will be",
  parameters: { type: "object", properties: { town: { type: "string" }, days: { type: "integer" } } },
};
/** A picture of one point. */
export const PICTURE =
  "data:image/png;base64," +
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** Fills in what a test leaves open. */
export const asked = (given = {}) => ({ model: MODEL, prompt: PROMPT, ...given });

/**
 * Calls `gather(piece)` for every piece of a stream, which tells whether there was output in it, and gives how many of
 * those there were; what goes wrong in the middle is thrown with that number as `seen`.
 */
export async function each(stream, gather) {
  let seen = 0;
  try {
    for await (const piece of stream) seen += gather(piece) ? 1 : 0;
  } catch (error) {
    throw Object.assign(error, { seen });
  }
  return seen;
}
