// What a case expects of a call as the upstream saw it.
import { isDeepStrictEqual } from "node:util";
import { numberFault, pointed, textFault } from "./match.mjs";

const CAPS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

const MEMBERS = {
  path: (expected, { path }) => (path === expected ? undefined : `the upstream's path is ${path}`),
  headers: (expected, { headers }, _, values) =>
    Object.entries(expected).map(([name, value]) => textFault(`upstream's ${name}`, value, headers[name], values)),
  headers_not_contain: (texts, { rawHeaders }) =>
    texts.filter((text) => rawHeaders.some((value) => value.includes(text))).map((text) => `the upstream saw ${text}`),
  json: (expected, { body }) =>
    Object.entries(expected).map(([pointer, value]) => {
      const actual = pointed(JSON.parse(body), pointer);
      return isDeepStrictEqual(actual, value) ? undefined : `the upstream's ${pointer} is ${JSON.stringify(actual)}`;
    }),
  output_cap: (expected, { body }, _, values) => {
    const sent = JSON.parse(body);
    const caps = CAPS.map((name) => sent[name]).filter((cap) => typeof cap === "number");
    return numberFault("output_cap", expected, Math.max(...caps), values);
  },
  body_equals_sent: (_, { body }, { wires }) =>
    wires.some((wire) => wire.body.equals(body)) ? undefined : `the upstream's body is ${body.subarray(0, 300)}`,
  body_contains: (texts, { body }) =>
    texts.filter((text) => !body.includes(text)).map((text) => `the upstream's body lacks ${text}`),
  body_starts_with: (text, { body }) =>
    body.subarray(0, text.length).equals(Buffer.from(text)) ? undefined : `the upstream's body begins otherwise`,
  cancelled_within_ms: async (within, { cancelled }, { replies }) => {
    const [closed, left] = [await cancelled, replies[0].leftAt];
    return closed !== null && closed - left <= within ? undefined : `the upstream was left at ${closed}, not ${left}`;
  },
};

export async function upstreamRequestFaults(expected, call, sending, values) {
  const found = Object.entries(expected).map(([name, value]) => {
    if (!MEMBERS[name]) throw new Error(`upstream_request: unknown ${name}`);
    return MEMBERS[name](value, call, sending, values);
  });
  return (await Promise.all(found)).flat().filter(Boolean);
}
