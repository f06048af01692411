// The Worker between a client and its upstream, as most tests want it: a policy in few words, and callers by name.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { open } from "../harness/client.mjs";
import { startUpstream } from "../harness/upstream.mjs";
import { start } from "../harness/worker.mjs";

export const CHAT = "/v1/chat/completions";
export const NOON = Date.parse("2031-03-05T12:00:00Z");
export const SECOND = 1_000;
export const DAY = 86_400_000;
export const UPSTREAM_KEY = "upstream-credential-5f0c2d9b";
/** What a token of the model costs, in billionths of a dollar. */
export const NANO_USD = { input: 1_000, output: 2_000 };

const MODELS = { alpha: { input: "1", output: "2", max_output: 1_000, context: 1_000_000, encoding: "o200k" } };
const BODY = { model: "alpha", messages: [{ role: "user", content: "Name three rivers." }], max_tokens: 100 };

/** A plan of these limits. */
export const plan = (limits, more = {}) => ({ models: ["*"], limits, ...more });
/** Of this, next to nothing comes back. */
export const stock = (unit, burst) => ({ unit, burst, refill: unit === "usd" ? "0.000000001" : 1, per: "day" });

/** The key of a caller. `ann/2` is a second key of the user `ann`. */
export const keyOf = (name) => `caller-key-of-${name}-Qm2xL0vTn4KdWz8RbYc3HfJ`;
export const subjectOf = (name) => `user:${name.split("/")[0]}`;

function keysOf(callers) {
  const entry = ([name, plan]) => [
    createHash("sha256").update(keyOf(name)).digest("hex"),
    { user: name.split("/")[0], plan },
  ];
  return JSON.stringify(Object.fromEntries(Object.entries(callers).map(entry)));
}

/** The Worker's variables; `callers` tells each caller's plan, and `upstreams` may be made of the one that is there. */
export function envOf({ plans, callers, models, upstreams, env, ...policy }, origin) {
  const own = { base_url: `${origin}/v1`, secret: "LLM_API_KEY", retry: { attempts: 1 } };
  return {
    API_KEYS: keysOf(callers),
    LLM_API_KEY: UPSTREAM_KEY,
    UPSTREAMS: { default: own, ...(typeof upstreams === "function" ? upstreams(own) : upstreams) },
    MODELS: { ...MODELS, ...models },
    PLANS: plans,
    // Only the models that a test names.
    POLICY: { shipped_prices: false, ...policy },
    ...env,
  };
}

/** Something that comes about by itself, soon. */
export async function eventually(what, look, withinMs = 5_000) {
  const until = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(performance.now() < until, `${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The headers of a reply that speak of limits. */
export function rateHeaders(reply) {
  const own = reply.headers.filter(([name]) => /^(x-ratelimit-|ratelimit)/i.test(name));
  return Object.fromEntries(own.map(([name, value]) => [name.toLowerCase(), value]));
}

export const json = (reply) => JSON.parse(reply.body.toString());

/** The error of a reply, which has all its members, each of them a text or null. */
export function errorOf(reply) {
  const { error, ...rest } = json(reply);
  assert.deepEqual(rest, {});
  assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
  for (const value of Object.values(error)) assert.ok(value === null || typeof value === "string", `${value}`);
  return error;
}

export class Gate {
  #policy;

  /** Starts both. A policy with faults ends the test at once, unless it is `faulty` on purpose. */
  static async start({ clock = NOON, bindings, faulty = false, ...policy }) {
    const gate = new Gate();
    gate.#policy = policy;
    gate.upstream = await startUpstream();
    gate.worker = await start({ env: gate.env(), bindings, remote: gate.upstream.origin, clock });
    const { faults } = await (await gate.worker.fetch("/healthz")).json();
    if (faults && !faulty) {
      await gate.stop();
      assert.fail(`the policy is not valid: ${faults.join("\n")}`);
    }
    return gate;
  }

  /** The variables of its policy, with changes. */
  env(changes = {}) {
    return envOf({ ...this.#policy, ...changes }, this.upstream.origin);
  }

  async stop() {
    await this.worker.stop();
    await this.upstream.close();
  }

  /** What the upstream answers from now on; `hooks` are what its script may wait for. */
  play(script, hooks) {
    return this.upstream.answerWith(script, { hooks });
  }

  /** A request as the raw client sends it; `name` is null for one without a key. */
  request(name, { method = "GET", path, headers = [], body = null }) {
    const credential = name === null ? [] : [["authorization", `Bearer ${keyOf(name)}`]];
    const kind = body === null ? [] : [["content-type", "application/json"]];
    const bytes = body === null || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    return { method, path, headers: [...credential, ...kind, ...headers], body: bytes };
  }

  /** Sends a request on a connection of its own, which `onOpen` is shown. */
  async send(request, { onOpen, ...conduct } = {}) {
    const connection = await open(this.worker.url);
    onOpen?.(connection);
    const reply = await connection.send(request, conduct);
    if (conduct.stopsReadingAfterEvent === undefined) connection.close();
    return reply;
  }

  /** One chat completion; `more` are further members of its body. */
  chat(name, more = {}, conduct = {}) {
    return this.send(this.request(name, { method: "POST", path: CHAT, body: { ...BODY, ...more } }), conduct);
  }

  stream(name, more = {}, conduct = {}) {
    return this.chat(name, { stream: true, ...more }, conduct);
  }

  async usage(name) {
    const reply = await this.send(this.request(name, { path: "/v1/usage" }));
    assert.equal(reply.status, 200, reply.body.toString());
    return json(reply);
  }

  /** What is left of a caller's limit. */
  async left(name, limit) {
    return (await this.usage(name)).limits.find((own) => own.name === limit).left;
  }

  /** Resolves once no call of the caller is under way. */
  settled(name) {
    return eventually(`the calls of ${name} end`, async () => (await this.usage(name)).open_holds === 0);
  }

  /** What was written down of a call, once it has ended. */
  record(reply) {
    const id = reply.header("x-request-id");
    return eventually(`call ${id} is written down`, () => this.worker.calls.find((call) => call.id === id));
  }
}
