// A gateway that cannot check limits lets nobody through, and says why.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CHAT, Gate, errorOf, json, plan, stock, subjectOf } from "./support/gate.mjs";

const POLICY = { plans: { stock: plan({ calls: stock("requests", 9) }) }, callers: { ann: "stock" } };
const BODY = { model: "alpha", messages: [] };
const ROUTES = [
  { method: "POST", path: CHAT, body: BODY },
  { method: "POST", path: "/v1/tokens/count", body: BODY },
  { path: "/v1/usage" },
];

/** Every fault of a policy is told with its place, what was found, and what is wanted. */
const FAULT = /^[A-Z_]+(\[\d+\])?[\w."-]*: [^,]+, got .*, want .+$/;

describe("a gateway whose policy has faults", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({
      ...POLICY,
      plans: {
        stock: plan({ calls: { unit: "requests", burst: -1, refill: 0, per: "fortnight" } }, { modles: ["*"] }),
        empty: plan({}),
      },
      models: { dear: { input: 0.5, output: "1e3", max_output: 100 } },
      bounds: { hold_ms: 10, first_byte_ms: 10_000 },
      aliases: { ghost: "nothing" },
      faulty: true,
    });
  });

  after(() => gate.stop());

  test("names all of them at its health page and in its log", async () => {
    const reply = await gate.send(gate.request(null, { path: "/healthz" }));
    assert.equal(reply.status, 503);
    const { status, faults } = json(reply);
    assert.equal(status, "policy_invalid");
    for (const fault of faults) assert.match(fault, FAULT);
    for (const place of [
      "PLANS.stock.modles",
      "PLANS.stock.limits.calls.burst",
      "PLANS.stock.limits.calls.refill",
      "PLANS.stock.limits.calls.per",
      "PLANS.empty.limits",
      "MODELS.dear.input",
      "MODELS.dear.output",
      "POLICY.bounds.hold_ms",
      "POLICY.aliases.ghost",
    ]) {
      assert.ok(faults.some((fault) => fault.startsWith(`${place}:`)), `${place} is not among\n${faults.join("\n")}`);
    }
    for (const fault of faults) assert.ok(gate.worker.lines.some((line) => line.includes(fault)), fault);
  });

  test("refuses every call with a code of its own, and forwards none", async () => {
    for (const route of [...ROUTES, { path: "/v1/models" }]) {
      const reply = await gate.send(gate.request("ann", route));
      assert.equal(reply.status, 503, route.path);
      const { type, code, message } = errorOf(reply);
      assert.deepEqual([type, code], ["server_error", "policy_invalid"]);
      assert.doesNotMatch(message, /fortnight|modles/);
    }
    assert.equal(gate.upstream.calls.length, 0);
    assert.equal((await gate.send(gate.request("ann", { path: "/nowhere" }))).status, 404);
  });

  test("is well again with a policy that has none", async () => {
    await gate.worker.deploy(gate.env({ ...POLICY, models: {}, bounds: {}, aliases: {} }));
    assert.equal((await gate.send(gate.request(null, { path: "/healthz" }))).status, 200);
    assert.equal((await gate.chat("ann")).status, 200);
  });
});

describe("a gateway without the objects that count", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ ...POLICY, bindings: { LIMITER: null }, faulty: true });
  });

  after(() => gate.stop());

  test("refuses every call that needs one, soon to be tried again, and forwards none", async () => {
    for (const route of ROUTES) {
      const reply = await gate.send(gate.request("ann", route));
      assert.equal(reply.status, 503, route.path);
      const { type, code, message } = errorOf(reply);
      assert.deepEqual([type, code], ["server_error", "limiter_unavailable"]);
      assert.doesNotMatch(message, /LIMITER|binding/);
      assert.ok(Number(reply.header("retry-after")) <= 60);
    }
    assert.equal(gate.upstream.calls.length, 0);
    assert.ok(gate.worker.lines.some((line) => line.includes("binding LIMITER is missing")));
  });

  test("does not say that it is well", async () => {
    const reply = await gate.send(gate.request(null, { path: "/healthz" }));
    assert.equal(reply.status, 503);
    assert.match(reply.body.toString(), /LIMITER/);
  });
});

describe("a gateway whose objects do not answer", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ ...POLICY, bounds: { limiter_ms: 200 } });
  });

  after(() => gate.stop());

  for (const effect of ["fails", "hangs", "reply-lost"]) {
    test(`refuses within its bound (${effect}), forwards nothing, and holds nothing afterwards`, async () => {
      await gate.worker.setFaults([{ at: "limiter.reserve", effect, times: 2 }]);
      const reply = await gate.chat("ann");
      assert.deepEqual([reply.status, errorOf(reply).code], [503, "limiter_unavailable"]);
      assert.ok(reply.ms < 3_000);
      assert.equal((await gate.record(reply)).charged, undefined);
      await gate.settled("ann");
      assert.equal(await gate.left("ann", "calls"), 9);
      assert.equal(gate.upstream.calls.length, 0);
    });
  }

  test("refuses a caller whose record was damaged, and no other", async () => {
    await gate.worker.setFaults([]);
    assert.equal((await gate.chat("ann")).status, 200);
    await gate.settled("ann");
    await gate.worker.object(subjectOf("ann")).damage();
    const reply = await gate.chat("ann");
    assert.deepEqual([reply.status, errorOf(reply).code], [503, "limiter_unavailable"]);
    assert.equal(gate.upstream.calls.length, 1);
  });
});
