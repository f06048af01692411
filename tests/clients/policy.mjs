// The policy that the clients meet: one plan for each thing to show, and keys of which each has a caller of its own.
import { createHash, randomBytes } from "node:crypto";
import { CLAUDE, MODELS } from "../standin/standin.mjs";

/** How long a caller of the plan `short` is sent away. Not whole seconds, to see which header a client goes by. */
export const SHORT_WAIT_MS = 1_200;
/** More than all tests of all clients take, of the plan that lets everything through and of each other one. */
const [ROOMY_KEYS, OTHER_KEYS] = [2_000, 300];

const plan = (limits) => ({ models: ["*"], output_default: 64, limits });
const one = (refill, per) => ({ unit: "requests", burst: 1, refill, per });

const PLANS = {
  roomy: plan({
    requests: { unit: "requests", burst: 1_000, refill: 1_000, per: "second" },
    tokens: { unit: "tokens", burst: 1_000_000, refill: 1_000_000, per: "second" },
  }),
  short: plan({ calls: one(60_000 / SHORT_WAIT_MS, "minute") }),
  long: plan({ calls: one(1, "day") }),
  daily: plan({ day: { unit: "requests", amount: 1, window: "day" } }),
  small: plan({ tokens: { unit: "tokens", burst: 500, refill: 500, per: "second" } }),
};
const PRICE = { input: "1.00", output: "2.00", max_output: 4_096 };

/** One-time keys: `next(plan)` gives one whose caller has not called yet. */
function makeKeys() {
  const newKey = (plan, place) => ({ plan, user: `${plan}-${place}`, key: randomBytes(16).toString("hex") });
  const keys = Object.keys(PLANS).flatMap((plan) =>
    Array.from({ length: plan === "roomy" ? ROOMY_KEYS : OTHER_KEYS }, (_, place) => newKey(plan, place)),
  );
  const digest = (key) => createHash("sha256").update(key).digest("hex");
  const secret = JSON.stringify(Object.fromEntries(keys.map(({ key, user, plan }) => [digest(key), { user, plan }])));
  return {
    secret,
    next(plan) {
      const place = keys.findIndex((entry) => entry.plan === plan);
      return place === -1 ? undefined : keys.splice(place, 1)[0].key;
    },
  };
}

/** The Worker's variables for the two upstreams (base addresses), each of which speaks both APIs, and the keys. */
export function makePolicy({ standin, refusing }) {
  const keys = makeKeys();
  const [paid, free] = [{ base_url: standin, secret: "LLM_API_KEY" }, { base_url: refusing }];
  const modelsOf = (before, upstream) => {
    const models = Object.keys(MODELS).map((name) => [`${before}${name}`, { ...PRICE, upstream }]);
    return { ...Object.fromEntries(models), [`${before}refusing`]: { ...PRICE, upstream: `${before}refusing` } };
  };
  const env = {
    POLICY: {},
    PLANS,
    MODELS: { ...modelsOf("", "default"), ...modelsOf(CLAUDE, "anthropic") },
    UPSTREAMS: {
      default: paid,
      refusing: free,
      anthropic: { ...paid, kind: "anthropic" },
      [`${CLAUDE}refusing`]: { ...free, kind: "anthropic" },
    },
    LLM_API_KEY: "upstream-key",
    API_KEYS: keys.secret,
  };
  return { env, keys };
}
