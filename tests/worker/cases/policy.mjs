// The policy of the cases, translated to the product's own. Amounts are in units of a millionth of a dollar.
import { createHash } from "node:crypto";
import { evaluate } from "./expression.mjs";

/** When every case begins, unless it says otherwise. */
export const CLOCK = Date.parse("2031-03-05T12:00:00Z");
export const UPSTREAM_KEY = "up-secret-KEY-55";
export const KEYS = {
  ALPHA: "edge-key-ALPHA-7Qm2xL0vTn4KdWz8RbYc3HfJ",
  BETA: "edge-key-BETA-9Zt4pC6sUe1MaXq5GwNh7DkV",
};
export const CALLERS = {
  "u-alpha": { key: KEYS.ALPHA, subject: "user:u-alpha", plan: "standard" },
  "u-beta": { key: KEYS.BETA, subject: "user:u-beta", plan: "basic" },
};
/** A caller with a plan like the case's, but more money than any call can cost: E is learned with it. */
export const GAUGE = { key: "edge-key-GAUGE-for-measuring-holds-only", subject: "user:u-gauge", plan: "gauge" };
/** What visitors are hashed under, and how their tokens are signed. */
export const VISITOR_SECRET = "visitor-secret-for-tests-only-0123456789abcdef";
export const GAUGE_BURST = 1_000_000_000;

const budget = () => ({ unit: "usd", burst: dollars(10_000), refill: dollars(10), per: "second" });
const plan = (models) => ({
  models,
  output_default: 256,
  output_above_max: "lower",
  n_max: 8,
  body_max: 1_048_576,
  on_disconnect: "cancel",
  on_unavailable: "closed",
  limits: { budget: budget() },
});

function baseline() {
  const image_tokens = 2_000;
  const all = ["alpha-small", "alpha-large", "embed-one", "free-tiny"];
  return {
    models: {
      "alpha-small": { input: "1", output: "2", max_output: 1_024, image_tokens },
      "alpha-large": { input: "5", output: "15", max_output: 4_096, image_tokens },
      "embed-one": { input: "1", output: "0", image_tokens },
      "free-tiny": { input: "0", output: "0", max_output: 1_024, image_tokens },
    },
    aliases: {},
    plans: {
      standard: plan(all),
      basic: plan(["alpha-small"]),
      visitor: { ...plan(all), daily_calls: 20 },
    },
    site: { daily_calls: 1_000 },
    bounds: { first_byte_ms: 30_000, idle_ms: 30_000, drain_ms: 60_000, ledger_ms: 5_000, hold_ms: 300_000 },
    cors: { origins: ["https://app.example"] },
  };
}

/** Units as the decimal text of dollars. */
export function dollars(units) {
  const nano = Math.round(units * 1_000);
  const sign = nano < 0 ? "-" : "";
  const digits = String(Math.abs(nano)).padStart(10, "0");
  return `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, "");
}

/**
 * The Worker's variables for a case's `config`; `planName` is the plan that its limits change. With `tokens` visitors
 * get tokens.
 */
export function envOf(config = {}, { planName, upstream, values, tokens = false }) {
  const sketch = baseline();
  for (const [name, patch] of Object.entries(config.limits ?? {})) {
    const limits = sketch.plans[planName].limits;
    limits[name] = patched(limits[name], patch, values);
  }
  const measuring = structuredClone(sketch.plans[planName]);
  for (const [path, value] of Object.entries(config.policy ?? {})) setPath(sketch, path.split("."), value);
  sketch.plans.gauge = { ...measuring, limits: { budget: { ...budget(), burst: dollars(GAUGE_BURST) } } };
  if (sketch.plans.visitor) sketch.visitors = { plan: "visitor" };
  if (tokens) {
    sketch.plans.network = { ...measuring, limits: { network: budget() } };
    sketch.visitors.tokens = { shared_plan: "network" };
  }
  const env = {
    API_KEYS: JSON.stringify(keys()),
    LLM_API_KEY: UPSTREAM_KEY,
    VISITOR_SECRET,
    UPSTREAMS: { default: { base_url: config.upstream_base ?? `${upstream}/v1`, secret: "LLM_API_KEY", retry: { attempts: 1 } } },
  };
  if (config.policy === null) return env;
  const { models: MODELS, plans: PLANS, ...POLICY } = sketch;
  return { ...env, POLICY, PLANS, MODELS };
}

function keys() {
  const entry = ([user, { key, plan }]) => [createHash("sha256").update(key).digest("hex"), { user, plan }];
  return Object.fromEntries(Object.entries({ ...CALLERS, "u-gauge": GAUGE }).map(entry));
}

/** A limit with a patch in units; a new one is made of the patch alone. */
function patched(limit, { burst, refill_per_s: refill, unit, amount, window, ...unknown }, values) {
  const names = Object.keys(unknown);
  if (names.length > 0) throw new Error(`limits: unknown ${names}`);
  const result = { ...limit };
  if (unit !== undefined) result.unit = unit;
  if (window !== undefined) result.window = window;
  if (burst !== undefined) result.burst = dollars(evaluate(burst, values));
  if (refill !== undefined) result.refill = dollars(evaluate(refill, values));
  if (amount !== undefined) result.amount = result.unit === "usd" ? dollars(evaluate(amount, values)) : amount;
  return result;
}

// A model's or an alias's name may not contain the separator, and none does.
function setPath(tree, [name, ...rest], value) {
  if (rest.length > 0) setPath((tree[name] ??= {}), rest, value);
  else if (value === null) delete tree[name];
  else tree[name] = value;
}
