// What every test of the openai package for Node.js needs: the package, fresh keys, and what the proxy saw.
import { pathToFileURL } from "node:url";

const { BASE_URL: baseURL, DESK_URL, CLIENT_MODULE } = process.env;

/** The package under test. */
export const openai = await import(pathToFileURL(CLIENT_MODULE));

export const ANSWER = "You said: hi there";
export const TOOL_ARGUMENTS = { town: "example", days: 1 };
export const TOOL = {
  type: "function",
  function: {
    name: "weather",
    parameters: { type: "object", properties: { town: { type: "string" }, days: { type: "integer" } } },
  },
};

async function desk(path, given) {
  const answer = await fetch(`${DESK_URL}/${path}?${new URLSearchParams(given)}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** A key of a caller who has not called yet. */
export const freshKey = async (plan) => (await desk("key", { plan })).key;
/** What the proxy saw of a key, oldest first. */
export const tries = (key) => desk("tries", { key });
export const statuses = async (key) => (await tries(key)).map(({ status }) => status);

/** A client as a program makes it. */
export const connect = (apiKey, options = {}) => new openai.OpenAI({ baseURL, apiKey, ...options });

const request = (given) => ({ model: "demo", messages: [{ role: "user", content: "hi there" }], ...given });

/** A chat completion: the package's own promise. */
export const chat = (client, given = {}) => client.chat.completions.create(request(given));

/** The chunks of a streamed answer; what goes wrong in the middle is thrown with the chunks `seen` before it. */
export async function stream(client, given = {}) {
  const seen = [];
  try {
    for await (const chunk of await chat(client, { ...given, stream: true })) seen.push(chunk);
  } catch (error) {
    throw Object.assign(error, { seen });
  }
  return seen;
}

// Ordinary programs write exactly this, and a chunk without choices would end them.
export const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join("");
