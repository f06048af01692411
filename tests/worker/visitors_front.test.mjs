// What stands in front of the limits: the platform's rate limiter, and the challenge before a token is given out.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { errorOf, json, plan, stock } from "./support/gate.mjs";
import { sequence, startDay, statuses, visit, withDay } from "./support/day.mjs";

const ADDRESS = "203.0.113.50";
const plans = {
  visitor: plan({ calls: stock("requests", 1_000) }, { daily_calls: 1_000 }),
  network: plan({ all: stock("requests", 1_000) }),
  keyed: plan({ calls: stock("requests", 1_000) }),
};
const policy = { plans, callers: { ann: "keyed" }, visitors: { plan: "visitor" } };

describe("the shield", () => {
  const SHIELD = { type: "rate-limit", namespace: "1001", simple: { limit: 3, period: 60 } };
  const shielded = (shield, act, bindings = { SHIELD }) =>
    withDay({ ...policy, ...(shield && { shield }), bindings }, act);

  /** Calls until the shield refuses. Its minutes are those of the platform's clock: a new one may begin any time. */
  async function untilRefused(gate, requestOf) {
    for (let admitted = 0; admitted <= 6; admitted += 1) {
      await gate.worker.setFaults([]);
      const reply = await gate.send(requestOf());
      if (reply.status === 429) return { refused: reply, admitted };
      await gate.record(reply);
    }
    return assert.fail("the shield refuses nothing");
  }

  test("refuses in our error shape, before any object or database is touched", () =>
    shielded({ period_s: 60 }, async (gate) => {
      const { refused, admitted } = await untilRefused(gate, () => visit(gate, ADDRESS));
      const error = errorOf(refused);
      assert.deepEqual([refused.status, error.type, error.code], [429, "requests", "rate_limit_exceeded"]);
      assert.deepEqual([refused.header("retry-after"), refused.header("retry-after-ms")], ["60", "60000"]);
      assert.equal(refused.header("x-tollgate-limited-by"), "shield");
      assert.deepEqual(await gate.worker.commands(), []);
      assert.deepEqual((await gate.worker.counts()).statements, []);
      assert.equal(gate.upstream.calls.length, admitted);
      // Other networks, and callers with a key, are not concerned.
      assert.equal((await gate.send(visit(gate, "203.0.113.51"))).status, 200);
      const keyed = await sequence(gate, 5, () => gate.request("ann", { path: "/v1/models" }));
      assert.deepEqual(statuses(keyed), { 200: 5 });
    }));

  test("stands in front of everyone where the policy says so, each by the subject", () =>
    shielded({ applies_to: "everyone", period_s: 10 }, async (gate) => {
      const { refused } = await untilRefused(gate, () => gate.request("ann", { path: "/v1/models" }));
      assert.deepEqual([refused.status, refused.header("retry-after")], [429, "10"]);
      assert.equal((await gate.send(visit(gate, ADDRESS))).status, 200);
    }));

  test("is a filter: where it is not bound, the limits decide", () =>
    shielded({ period_s: 60 }, async (gate) => {
      assert.deepEqual(statuses(await sequence(gate, 5, () => visit(gate, ADDRESS))), { 200: 5 });
    }, {}));

  test("does nothing where the policy does not ask for it", () =>
    shielded(undefined, async (gate) => {
      assert.deepEqual(statuses(await sequence(gate, 5, () => visit(gate, ADDRESS))), { 200: 5 });
    }));

  test("has the period that the binding can have, or the policy is not valid", () =>
    withDay({ ...policy, shield: { period_s: 30 }, faulty: true }, async (gate) => {
      const { faults } = await (await gate.worker.fetch("/healthz")).json();
      assert.deepEqual(faults, ["POLICY.shield.period_s: period, got 30, want 10 or 60, as the binding has it"]);
    }));
});

describe("the challenge before a token is given out", () => {
  const SECRET = "secret-of-the-widget";
  const asked = [];
  let judge;
  let server;
  let gate;

  before(async () => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const piece of request) body += piece;
      const form = Object.fromEntries(new URLSearchParams(body));
      asked.push({ method: request.method, type: request.headers["content-type"], ...form });
      judge(response, form);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${server.address().port}/siteverify`;
    const tokens = { shared_plan: "network", turnstile: true, turnstile_url: url, issue_per_hour: 2 };
    gate = await startDay({
      ...policy,
      visitors: { plan: "visitor", tokens },
      env: { TURNSTILE_SECRET: SECRET },
      bounds: { ledger_ms: 500, hold_ms: 600_000, first_byte_ms: 100_000 },
    });
  });

  after(async () => {
    server.closeAllConnections();
    server.close();
    await gate.stop();
  });

  const says = (answer) => (response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  };
  const ask = (answer, address = ADDRESS) => {
    const headers = [["cf-connecting-ip", address], ...(answer ? [["cf-turnstile-response", answer]] : [])];
    return gate.send(gate.request(null, { method: "POST", path: "/v1/visitor", headers }));
  };

  test("lets a browser in whose answer is good", async () => {
    judge = says({ success: true });
    const reply = await ask("answer-5&x=1");
    assert.equal(reply.status, 200, reply.body.toString());
    assert.ok(json(reply).token);
    const type = "application/x-www-form-urlencoded";
    assert.deepEqual(asked, [{ method: "POST", type, secret: SECRET, response: "answer-5&x=1" }]);
  });

  test("refuses one whose answer is missing or not good, and counts nothing", async () => {
    judge = says({ success: false, "error-codes": ["invalid-input-response"] });
    for (const answer of [null, "bad", "bad", "bad"]) {
      const reply = await ask(answer);
      const { code, param } = errorOf(reply);
      assert.deepEqual([reply.status, code, param], [400, "challenge_failed", "cf-turnstile-response"]);
      assert.equal(reply.header("set-cookie"), undefined);
    }
    judge = says({ success: true });
    assert.equal((await ask("good")).status, 200);
    assert.equal((await ask("good")).status, 429);
  });

  for (const [what, act] of [
    ["fails", (response) => response.socket.destroy()],
    ["answers nonsense", (response) => response.end("<html>")],
    ["says something else than yes", says({ success: "true" })],
    ["never answers", () => {}],
  ]) {
    test(`gives out nothing when its server ${what}`, async () => {
      judge = act;
      const reply = await ask("good", "203.0.113.60");
      assert.ok([400, 503].includes(reply.status), `${reply.status}`);
      assert.equal(reply.header("set-cookie"), undefined);
      assert.ok(reply.ms < 3_000);
      errorOf(reply);
    });
  }

  test("leaves neither its secret nor an answer in the log", () => {
    for (const text of [SECRET, "answer-5"]) assert.ok(!gate.worker.lines.some((line) => line.includes(text)), text);
  });

  test("needs its secret, or the policy is not valid", () => {
    const tokens = { shared_plan: "network", turnstile: true };
    return withDay({ ...policy, visitors: { plan: "visitor", tokens }, faulty: true }, async (bare) => {
      const { faults } = await (await bare.worker.fetch("/healthz")).json();
      assert.ok(faults.some((fault) => fault.includes("TURNSTILE_SECRET")), faults);
    });
  });
});
