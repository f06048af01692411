// What a case expects, member by member. Each answers with what is wrong, or with nothing.
import { isDeepStrictEqual } from "node:util";
import { bytesOf } from "../harness/upstream.mjs";
import { MONEY } from "./balances.mjs";
import { dayCountFaults } from "./day.mjs";
import { numberFault, pointed, textFault } from "./match.mjs";
import { upstreamRequestFaults } from "./upstream-request.mjs";

const SHAPE = ["code", "message", "param", "type"];

const MEMBERS = {
  ...MONEY,
  day_count: dayCountFaults,
  status: (expected, { replies }) => {
    const allowed = [expected].flat();
    const other = replies.filter(({ status }) => !allowed.includes(status));
    if (replies.length > 0 && other.length === 0) return undefined;
    return `status is ${other.map(({ status }) => status)}, expected ${allowed}`;
  },
  status_counts: (expected, { replies }) => {
    const counts = {};
    for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
    return isDeepStrictEqual(counts, expected) ? undefined : `statuses are ${JSON.stringify(counts)}`;
  },
  upstream_calls: (expected, { tag }, stage) => {
    const calls = stage.upstream.calls.filter((call) => call.tag === tag).length;
    return numberFault("upstream_calls", expected, calls, stage.values);
  },
  upstream_paths_absent: (paths, _, stage) => {
    const seen = paths.filter((path) => stage.upstream.calls.some((call) => call.path === path));
    return seen.length > 0 ? `the upstream saw ${seen}` : undefined;
  },
  upstream_request: (expected, sending, stage) => {
    const calls = stage.upstream.calls.filter((call) => call.tag === sending.tag);
    if (calls.length === 0) return "no call reached the upstream";
    return Promise.all(calls.map((call) => upstreamRequestFaults(expected, call, sending, stage.values)));
  },
  headers: (expected, { replies }, stage) =>
    replies.flatMap((reply) =>
      Object.entries(expected).map(([name, value]) => textFault(name, value, reply.header(name), stage.values)),
    ),
  error: (expected, { replies }, stage) => replies.flatMap((reply) => errorFaults(expected, reply, stage.values)),
  json: (expected, { replies }, stage) =>
    replies.flatMap(({ body }) =>
      Object.entries(expected).map(([pointer, value]) => {
        return valueFault(pointer, value, pointed(jsonOf(body), pointer), stage);
      }),
    ),
  body_contains: (texts, { replies }) =>
    replies.flatMap(({ body }) => texts.filter((text) => !body.includes(text)).map((text) => `the body lacks ${text}`)),
  body_not_contains: (texts, { replies }) =>
    replies.flatMap(({ body }) => texts.filter((text) => body.includes(text)).map((text) => `the body has ${text}`)),
  body_empty: (_, { replies }) => replies.map(({ body }) => (body.length > 0 ? "the body is not empty" : undefined)),
  body_equals_upstream: (expected, { replies, script }) => {
    const wanted = bytesOf(script, expected.without);
    return replies.map(({ body, whole }) => bodyFault(wanted, body, whole));
  },
  stream_end: (expected, { replies }, stage) => {
    if (expected !== "failed") throw new Error(`stream_end: unknown ${expected}`);
    return replies.flatMap(({ body }) => failedEndFaults(body.toString(), stage.values));
  },
  answered_within_ms: (expected, { replies }) =>
    replies.map(({ ms }) => (ms > expected ? `answered after ${Math.round(ms)} ms` : undefined)),
  stores_not_contain: async (texts, _, stage) => {
    const stored = stage.worker.stored();
    if (!stored.includes("visitor:")) return "what is stored could not be read";
    return texts.filter((text) => stored.includes(text)).map((text) => `${text} is stored`);
  },
  logs_not_contain: (texts, _, stage) =>
    texts.filter((text) => stage.worker.lines.some((line) => line.includes(text))).map((text) => `${text} is logged`),
};

/** Everything that is not as expected of a sending. */
export async function faultsOf(stage, expected, sending) {
  const { one_of: alternatives, ...rest } = expected;
  const found = [];
  for (const [name, value] of Object.entries(rest)) {
    if (!MEMBERS[name]) throw new Error(`expect: unknown ${name}`);
    found.push(await MEMBERS[name](value, sending, stage, rest));
  }
  const faults = found.flat(2).filter(Boolean);
  return alternatives ? [...faults, ...(await noneOf(stage, alternatives, sending))] : faults;
}

async function noneOf(stage, alternatives, sending) {
  const all = [];
  for (const alternative of alternatives) {
    // A status that is another one makes waiting for the balance of this alternative useless.
    const status = MEMBERS.status(alternative.status, sending);
    const faults = status ? [status] : await faultsOf(stage, alternative, sending);
    if (faults.length === 0) return [];
    all.push(`[${faults.join("; ")}]`);
  }
  return [`none of: ${all.join(" ")}`];
}

function errorFaults(expected, { body }, values) {
  const json = jsonOf(body);
  const error = json?.error;
  const shaped =
    isDeepStrictEqual(Object.keys(json ?? {}), ["error"]) &&
    isDeepStrictEqual(Object.keys(error ?? {}).sort(), SHAPE) &&
    SHAPE.every((name) => error[name] === null || typeof error[name] === "string");
  if (!shaped) return ["the body is not an error of our shape"];
  return Object.entries(expected).map(([name, value]) => textFault(`error.${name}`, value, error[name], values));
}

function failedEndFaults(text, values) {
  const events = text.split(/\r?\n\r?\n/).filter((event) => event.trim());
  const data = /^data: (.*)$/s.exec(events.at(-1) ?? "")?.[1];
  const shape = () => errorFaults({}, { body: Buffer.from(data) }, values);
  const faults = data === undefined ? ["the last event is no data"] : shape();
  return text.includes("[DONE]") ? [...faults, "there is a [DONE]"] : faults;
}

function bodyFault(wanted, body, whole) {
  if (!whole) return "the reply broke off";
  if (wanted.equals(body)) return undefined;
  const length = Math.min(wanted.length, body.length);
  let at = 0;
  while (at < length && wanted[at] === body[at]) at += 1;
  const shown = (bytes) => JSON.stringify(bytes.subarray(Math.max(at - 20, 0), at + 60).toString());
  return `the body differs at byte ${at}: ${shown(body)}, expected ${shown(wanted)}`;
}

function valueFault(pointer, expected, actual, stage) {
  if (typeof actual === "number") return numberFault(pointer, expected, actual, stage.values);
  if (typeof expected === "string" || expected?.regex) return textFault(pointer, expected, actual, stage.values);
  return isDeepStrictEqual(actual, expected) ? undefined : `${pointer} is ${JSON.stringify(actual)}`;
}

export function jsonOf(body) {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
