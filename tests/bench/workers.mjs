// The Workers that are measured, and who calls them.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { root } from "../tools/setup.mjs";

const here = join(root, "tests", "bench");

/** As many limits as the shipped plan has, but none that a benchmark could reach. */
const OPEN = {
  requests: { unit: "requests", burst: 1_000_000, refill: 1_000_000, per: "minute" },
  tokens: { unit: "tokens", burst: 1_000_000_000, refill: 1_000_000_000, per: "minute" },
  parallel: { unit: "concurrency", amount: 1_000 },
  day: { unit: "usd", amount: "1000000", window: "day" },
  month: { unit: "usd", amount: "1000000", window: "month" },
};
/** One call, and no other until the next day. */
const SPENT = { ...OPEN, requests: { unit: "requests", burst: 1, refill: 1, per: "day" } };
const plan = (limits) => ({ models: ["*"], limits });
const MODEL = { input: "1.00", output: "2.00", max_output: 4_096, encoding: "o200k" };

/** So many callers that each makes about a call a second; a single one is measured by itself. */
export const CALLERS = 32;

const USERS = {
  ...Object.fromEntries(Array.from({ length: CALLERS }, (_, place) => [`open-${place}`, "open"])),
  busy: "open",
  refused: "spent",
  waiting: "spent",
};

function keys() {
  const digest = (user) => createHash("sha256").update(`key-${user}`).digest("hex");
  return Object.fromEntries(Object.entries(USERS).map(([user, plan]) => [digest(user), { user, plan }]));
}

/** Tollgate, of the build in a folder, in front of an upstream; `entry` stands in front of its own. */
export function tollgate(build, upstream, { method = "exact", entry } = {}) {
  const own = [join(build, "index.js"), join(build, "index_bg.wasm")];
  return {
    modules: entry ? [join(here, entry), ...own] : own,
    objects: true,
    vars: {
      POLICY: { counting: { method } },
      PLANS: { open: plan(OPEN), spent: plan(SPENT) },
      MODELS: Object.fromEntries(["plain", "fast", "slow", "hang"].map((name) => [name, MODEL])),
      UPSTREAMS: { default: { base_url: `${upstream}/v1`, secret: "LLM_API_KEY" } },
      LLM_API_KEY: "upstream-key",
      API_KEYS: JSON.stringify(keys()),
    },
  };
}

export const bare = (upstream) => ({ modules: [join(here, "bare.mjs")], objects: false, vars: { UPSTREAM: upstream } });

/** A call of a user. */
export function chat(user, { model = "plain", prompt = "Name three rivers.", want, ...more } = {}) {
  const stream = model === "fast" || model === "slow" ? { stream: true } : {};
  return {
    headers: { authorization: `Bearer key-${user}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: prompt }], ...stream, ...more }),
    want,
  };
}

/** The n-th call of many callers who take turns. */
export const inTurn = (given) => (n) => chat(`open-${n % CALLERS}`, given);

const WORDS =
  "the of and to in is that it was for on are with they at be this from have or by one had not but what all " +
  "were when we there can an your which their said if do will each about how up out them then she many some " +
  "so these would other into has more her two like him see time could no make than first been its who now " +
  "people my made over did down";

/** English-like text of so many bytes, the same every time. */
export function english(bytes) {
  const words = WORDS.split(" ");
  let [text, state] = ["", 7];
  while (text.length < bytes) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const word = words[(state >>> 8) % words.length];
    text += text === "" || text.endsWith(". ") ? word[0].toUpperCase() + word.slice(1) : word;
    text += (state >>> 16) % 12 === 0 ? ". " : " ";
  }
  return text.slice(0, bytes);
}
