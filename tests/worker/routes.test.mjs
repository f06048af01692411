// What can be asked beside the model itself: what one may call, what is left, whether the gateway is well.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CHAT, Gate, NOON, errorOf, json, plan, rateHeaders, stock } from "./support/gate.mjs";

const MODEL = { input: "1", output: "2", max_output: 100, encoding: "o200k" };
const plans = {
  all: plan({
    rate: { unit: "requests", burst: 5, refill: 30, per: "minute" },
    budget: stock("usd", "1"),
    visits: { unit: "requests", amount: 9, window: "month" },
    open: { unit: "concurrency", amount: 2 },
  }),
  some: plan({ calls: stock("requests", 9) }, { models: ["beta"] }),
};
const POLICY = {
  plans,
  callers: { ann: "all", ben: "some", "ann/2": "all" },
  models: { beta: MODEL },
  aliases: { small: "beta", large: "alpha" },
};
const ROUTES = {
  [CHAT]: "POST",
  "/v1/tokens/count": "POST",
  "/v1/models": "GET",
  "/v1/usage": "GET",
  "/healthz": "GET",
};
const PAGE = "https://app.example";

describe("a gateway", () => {
  let gate;

  before(async () => {
    gate = await Gate.start(POLICY);
  });

  after(() => gate.stop());

  const get = (name, path, headers) => gate.send(gate.request(name, { path, headers }));

  test("lists the models that a caller may use, aliases included", async () => {
    const models = async (name) => {
      const reply = await get(name, "/v1/models");
      assert.equal(reply.status, 200);
      const { object, data } = json(reply);
      assert.equal(object, "list");
      for (const model of data) assert.deepEqual([model.object, typeof model.created], ["model", "number"]);
      return data.map(({ id }) => id).sort();
    };
    assert.deepEqual(await models("ann"), ["alpha", "beta", "large", "small"]);
    assert.deepEqual(await models("ben"), ["beta", "small"]);
    assert.equal((await get(null, "/v1/models")).status, 401);
  });

  test("shows one model to those who may use it, however its name is written in the path", async () => {
    const one = async (name, id) => {
      const reply = await get(name, `/v1/models/${id}`);
      return [reply.status, json(reply).id ?? json(reply).error.code];
    };
    assert.deepEqual(await one("ann", "alpha"), [200, "alpha"]);
    assert.deepEqual(await one("ann", "%61lpha"), [200, "alpha"]);
    assert.deepEqual(await one("ben", "alpha"), [404, "model_not_found"]);
    assert.deepEqual(await one("ann", "no/such%2Fmodel"), [404, "model_not_found"]);
    assert.deepEqual(await one(null, "alpha"), [401, "invalid_api_key"]);
    assert.equal((await get("ann", "/v1/models/")).status, 404);
  });

  test("shows a caller what is left of each limit and when it is back, as the headers have it", async () => {
    const reply = await gate.chat("ann");
    const { charged } = await gate.record(reply);
    const usage = await gate.usage("ann/2");
    assert.deepEqual([usage.object, usage.plan, usage.at_ms, usage.open_holds], ["usage", "all", NOON, 0]);
    const limits = Object.fromEntries(usage.limits.map(({ name, ...limit }) => [name, limit]));
    const none = { limit_usd: null, left_usd: null };
    const april = Date.parse("2031-04-01T00:00:00Z");
    assert.deepEqual(limits.rate, { unit: "requests", kind: "bucket", limit: 5, left: 4, full_in_ms: 2_000, ...none });
    assert.deepEqual(limits.open, { unit: "concurrency", kind: "slots", limit: 2, left: 2, full_in_ms: 0, ...none });
    assert.deepEqual([limits.visits.kind, limits.visits.left], ["window", 8]);
    assert.equal(limits.visits.full_in_ms, april - NOON);
    assert.deepEqual([limits.budget.unit, limits.budget.limit_usd], ["nano_usd", "1"]);
    assert.deepEqual([limits.budget.left, limits.budget.left_usd], [1e9 - charged.usd, "0.99998"]);
    const headers = rateHeaders(await get("ann", "/v1/usage"));
    assert.match(headers.ratelimit, /"rate";r=4;t=2/);
    assert.match(headers.ratelimit, /"open";r=2/);
    assert.match(headers.ratelimit, /"budget";r=999980/);
  });

  test("shows the calls that are under way, and spends nothing by being asked", async () => {
    const answered = Promise.withResolvers();
    await gate.play({ ...okScript(), wait_for_step: "answer" }, { step: () => answered.promise });
    const arrived = gate.upstream.nextCall();
    const replying = gate.chat("ben", { model: "beta" });
    await arrived;
    for (let time = 0; time < 3; time += 1) {
      const { open_holds: open, limits } = await gate.usage("ben");
      assert.deepEqual([open, limits[0].left], [1, 8]);
    }
    answered.resolve();
    assert.equal((await replying).status, 200);
    await gate.settled("ben");
    assert.equal(await gate.left("ben", "calls"), 8);
  });

  test("is well, and says so to anybody", async () => {
    const reply = await get(null, "/healthz");
    assert.equal(reply.status, 200);
    assert.equal(json(reply).status, "ok");
    assert.equal(reply.header("cache-control"), "no-store");
  });

  test("has these routes and no others, as they are written", async () => {
    const near = ["/", "/v1", "/v1/chat/completion", "/V1/models", "/v1/embedding", "/healthz/x"];
    const spelled = [`${CHAT}/`, `/v1${CHAT}`, "/v1/models/", "//v1/models", "/v1/models%2f"];
    const seen = gate.upstream.calls.length;
    for (const path of [...near, ...spelled]) {
      for (const method of ["GET", "POST"]) {
        const reply = await gate.send(gate.request("ann", { method, path, body: method === "POST" ? {} : null }));
        assert.equal(reply.status, 404, `${method} ${path}`);
        const { type, code } = errorOf(reply);
        assert.deepEqual([type, code], ["invalid_request_error", "unknown_url"]);
        assert.match(reply.header("x-request-id"), /^[0-9a-f-]{36}$/);
      }
    }
    assert.equal(gate.upstream.calls.length, seen);
    assert.equal((await get("ann", "/v1/models?limit=3")).status, 200);
  });

  test("has one method for each route, and says which", async () => {
    for (const [path, allowed] of Object.entries(ROUTES)) {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((other) => other !== allowed)) {
        const reply = await gate.send(gate.request("ann", { method, path }));
        assert.deepEqual([reply.status, reply.header("allow")], [405, allowed], `${method} ${path}`);
        assert.equal(errorOf(reply).code, "method_not_supported");
      }
      const head = await gate.send(gate.request("ann", { method: "HEAD", path }));
      assert.deepEqual([head.status, head.header("allow")], [405, allowed], `HEAD ${path}`);
    }
  });

  test("has no CORS unless the policy names web origins", async () => {
    const reply = await get("ann", "/v1/models", [["origin", PAGE]]);
    assert.deepEqual(reply.headers.filter(([name]) => /^(access-control|vary)/i.test(name)), []);
  });
});

function okScript() {
  const choices = [{ index: 0, message: { role: "assistant", content: "Volga." }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  return { status: 200, headers: { "content-type": "application/json" }, body: { choices, usage } };
}

describe("a gateway that web pages may call", () => {
  let gate;

  before(async () => {
    const one = plan({ calls: stock("requests", 1) });
    gate = await Gate.start({ plans: { one }, callers: { ann: "one" }, cors: { origins: [PAGE] } });
  });

  after(() => gate.stop());

  const asked = [
    ["access-control-request-method", "POST"],
    ["access-control-request-headers", "authorization,content-type,x-stainless-os"],
  ];
  const preflight = (origin, path = CHAT) =>
    gate.send(gate.request(null, { method: "OPTIONS", path, headers: [["origin", origin], ...asked] }));

  test("answers a preflight without a credential, and counts nothing", async () => {
    await gate.worker.setFaults([]);
    const reply = await preflight(PAGE);
    assert.deepEqual([reply.status, reply.body.length], [204, 0]);
    assert.equal(reply.header("access-control-allow-origin"), PAGE);
    assert.match(reply.header("access-control-allow-methods"), /POST/);
    assert.match(reply.header("access-control-allow-headers"), /x-stainless-os/);
    assert.match(reply.header("vary"), /origin/i);
    assert.equal(reply.header("access-control-allow-credentials"), undefined);
    assert.deepEqual(await gate.worker.commands(), []);
  });

  test("allows no other origin, and says in either case what its answer depends on", async () => {
    for (const origin of ["https://elsewhere.example", "null", `${PAGE}.evil.example`, PAGE.replace("https", "http")]) {
      const call = gate.request("ann", { path: "/v1/models", headers: [["origin", origin]] });
      for (const reply of [await preflight(origin), await gate.send(call)]) {
        assert.equal(reply.header("access-control-allow-origin"), undefined);
        assert.match(reply.header("vary"), /origin/i);
      }
    }
  });

  test("lets a page read every answer, a refusal and its wait among them", async () => {
    const from = [["origin", PAGE]];
    const body = { model: "alpha", messages: [], max_tokens: 1 };
    const chat = (name) => gate.send(gate.request(name, { method: "POST", path: CHAT, body, headers: from }));
    const replies = [await chat("ann"), await chat("ann"), await chat(null)];
    replies.push(await gate.send(gate.request("ann", { path: "/nowhere", headers: from })));
    assert.deepEqual(replies.map(({ status }) => status), [200, 429, 401, 404]);
    for (const reply of replies) {
      assert.equal(reply.header("access-control-allow-origin"), PAGE);
      const exposed = reply.header("access-control-expose-headers").split(/,\s*/);
      const own = reply.headers.map(([name]) => name.toLowerCase());
      const meant = own.filter((name) => /ratelimit|retry|x-request-id|tollgate/.test(name));
      assert.deepEqual(meant.filter((name) => !exposed.includes(name)), []);
    }
  });
});
