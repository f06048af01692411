// What every test of a package for Node.js needs: the package's adapter, fresh keys, and what the proxy saw.
//
// An adapter's module exports `make(load, given)`, where `load(name)` imports an installed package. What it gives:
//
//   errors   the names of the classes that a program meets, by what happened
//   habits   what sets the package apart; see HABITS
//   connect(key, { retries })  a caller, with the package's own number of retries if none is given:
//     chat(given)    → { text, finish, usage, calls, pieces }; `given` is { model, prompt, image, tools, cap, usage }
//     stream(given)  → the same, of a streamed answer; what goes wrong in the middle is thrown with `seen` pieces
//     giveBack(answer, text)  the next answer, after the tool that `answer` calls has given `text`
//     embed(texts, { model, dimensions }) → { vectors, tokens }, where the package can
//   told(error) → { name, status, type, code, param, message }, of what a program catches
//
// `finish` is stop, length or tool_calls, `usage` is [input tokens, output tokens] or undefined, and `calls` are
// { name, arguments }, the arguments parsed.
import { pathToFileURL } from "node:url";

export const { BASE_URL } = process.env;
const { DESK_URL, CLIENT, PACKAGES } = process.env;
/** What the list of clients says of this one. */
export const given = JSON.parse(CLIENT);
/** Imports an installed package. */
export const { load } = await import(pathToFileURL(PACKAGES));
const { make } = await import(new URL(`adapters/${given.adapter}.mjs`, import.meta.url));

const HABITS = {
  /** Whether it asks for the usage of every stream, or of none, or only where a program does. */
  asksForUsage: "when told",
  /** After how many milliseconds at least it comes back if it is sent away for longer than a minute. */
  comesBackAfter: [],
  /** How often it comes to an upstream that fails, if it may retry twice. */
  triesOfFailure: 3,
  /** The header that it goes by. */
  waitsFor: "retryAfterMs",
  /** Whether it says which try it is. */
  counts: true,
  /** The name on the wire of what a cap of zero sets, and what the proxy says of it. */
  badField: "max_tokens",
  badCode: "invalid_request",
  /** Whether a program is told how many tokens an embedding took. */
  countsEmbeddings: true,
  /** What of an error's body a program can read. */
  tells: ["type", "code", "param"],
  /** The type of an error by its status, where its route has types of its own. */
  typeOf: (status, type) => type,
  /** Whether the errors of the upstreams that it reaches have codes. */
  upstreamHasCodes: true,
};

const made = await make(load, { baseURL: BASE_URL, ...given });

export const { connect, told, errors } = made;
export const habits = { ...HABITS, ...made.habits };

export const ANSWER = "You said: hi there";
export const TOOL_ARGUMENTS = { town: "example", days: 1 };

async function desk(path, query) {
  const answer = await fetch(`${DESK_URL}/${path}?${new URLSearchParams(query)}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** A key of a caller who has not called yet. */
export const freshKey = async (plan) => (await desk("key", { plan })).key;
/** What the proxy saw of a key, oldest first. */
export const tries = (key) => desk("tries", { key });
export const statuses = async (key) => (await tries(key)).map(({ status }) => status);
