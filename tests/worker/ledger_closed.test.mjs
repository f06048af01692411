// A ledger that cannot be asked: the call is refused, nothing is called, nothing stays held, the health check tells.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { NANO_USD, SECOND, errorOf, eventually, json, plan, stock, subjectOf } from "./support/gate.mjs";
import { failure, stream } from "./support/sse.mjs";
import { RETRY, posted, rowOf, sequence, statuses, visit, visitorOf, withDay } from "./support/day.mjs";

const ADDRESS = "203.0.113.40";
const VISITOR = visitorOf(ADDRESS);
const COST = 10 * NANO_USD.input + 5 * NANO_USD.output;
const limits = { budget: stock("usd", "1"), calls: stock("requests", 1_000) };
const policy = {
  plans: { keyed: plan(limits), visitor: plan(limits, { daily_calls: 50 }) },
  callers: { ann: "keyed" },
  visitors: { plan: "visitor" },
  site: { daily_calls: 1_000 },
  bounds: { hold_ms: 120 * SECOND, first_byte_ms: 1_000, ledger_ms: 500 },
};

const health = async (gate) => {
  const reply = await gate.worker.fetch("/healthz");
  return { http: reply.status, ...(await reply.json()) };
};

/** What an object's record has open, and what is spent there. */
async function recordOf(gate, subject) {
  const { values } = await gate.worker.object(subject).stored();
  return JSON.parse(values.account);
}

const released = (gate, subject) =>
  eventually("the hold is released", async () => {
    const { holds, balances } = await recordOf(gate, subject);
    return holds.length === 0 && balances.length === 0;
  });

const BROKEN = {
  "the table is missing": {
    breaks: (gate) => gate.worker.sql("DROP TABLE ledger"),
    mends: (gate) => gate.worker.migrate(),
  },
  "the binding is missing": { bindings: { LEDGER: null } },
  "the database fails": {
    breaks: (gate) => gate.worker.setFaults([{ at: "ledger.*", effect: "fails", times: "always" }]),
    mends: (gate) => gate.worker.setFaults([]),
  },
  "the database never answers": {
    breaks: (gate) => gate.worker.setFaults([{ at: "ledger.*", effect: "hangs", times: "always" }]),
    mends: (gate) => gate.worker.setFaults([]),
  },
};

describe("where", () => {
  for (const [what, { bindings, breaks, mends }] of Object.entries(BROKEN)) {
    test(`${what}, calls are refused until it is mended`, () =>
      withDay({ ...policy, bindings }, async (gate) => {
        await breaks?.(gate);
        for (const [subject, send] of [
          [VISITOR, () => gate.send(visit(gate, ADDRESS))],
          [subjectOf("ann"), () => gate.chat("ann")],
        ]) {
          const reply = await send();
          assert.equal(reply.status, 503);
          assert.deepEqual([errorOf(reply).type, errorOf(reply).code], ["server_error", "limiter_unavailable"]);
          assert.equal(reply.header("retry-after"), "2");
          assert.ok(reply.ms < 3_000, `${reply.ms} ms`);
          assert.ok(!/LEDGER|D1|table|fault/i.test(reply.body.toString()), "the cause is shown");
          await released(gate, subject);
        }
        assert.equal(gate.upstream.calls.length, 0);
        await gate.worker.advance(6 * SECOND);
        const sick = await health(gate);
        assert.deepEqual([sick.http, sick.status, sick.ledger], [503, "ledger_unavailable", "unavailable"]);
        assert.ok(gate.worker.lines.some((line) => line.includes("the ledger is not available")), "it is not logged");
        if (!mends) return;
        await mends(gate);
        assert.equal((await gate.send(visit(gate, ADDRESS))).status, 200);
        await gate.worker.advance(6 * SECOND);
        const well = await health(gate);
        assert.deepEqual([well.http, well.status, well.ledger], [200, "ok", "ok"]);
      }));
  }

  test("the database's answer is lost, the call is refused and counts at most once", () =>
    withDay(policy, async (gate) => {
      await gate.worker.setFaults([{ at: "ledger.gate", effect: "reply-lost" }]);
      assert.equal((await gate.send(visit(gate, ADDRESS))).status, 503);
      await released(gate, VISITOR);
      await posted(gate, VISITOR);
      assert.ok((await rowOf(gate, VISITOR)).calls <= 1);
      assert.equal(gate.upstream.calls.length, 0);
    }));

  test("the usage of a day cannot be read, that is said, and not shown as nothing", () =>
    withDay(policy, async (gate) => {
      await gate.worker.setFaults([{ at: "ledger.*", effect: "fails", times: "always" }]);
      const request = gate.request(null, { path: "/v1/usage", headers: [["cf-connecting-ip", ADDRESS]] });
      assert.equal((await gate.send(request)).status, 503);
      await gate.worker.setFaults([]);
      assert.deepEqual(json(await gate.send(request)).day.calls, { limit: 50, used: 0, left: 50 });
    }));
});

describe('on_unavailable = "open"', () => {
  const open = { ...policy, ledger: { on_unavailable: "open", on_unavailable_per_minute: 3 } };
  const down = [{ at: "ledger.*", effect: "fails", times: "always" }];

  test("lets so many calls pass in a minute, and no more", () =>
    withDay(open, async (gate) => {
      await gate.worker.setFaults(down);
      const minute = async () => statuses(await sequence(gate, 6, () => visit(gate, ADDRESS)));
      assert.deepEqual(await minute(), { 200: 3, 503: 3 });
      await gate.worker.advance(59_999);
      assert.deepEqual(await minute(), { 503: 6 });
      await gate.worker.advance(1);
      assert.deepEqual(await minute(), { 200: 3, 503: 3 });
      assert.equal(gate.upstream.calls.length, 6);
    }));

  test("records what passed uncounted, and takes nothing from what others have counted", () =>
    withDay(open, async (gate) => {
      assert.equal((await gate.chat("ann")).status, 200);
      await gate.settled("ann");
      await posted(gate, subjectOf("ann"));
      await gate.worker.setFaults(down);
      assert.equal((await gate.send(visit(gate, ADDRESS))).status, 200);
      await gate.play({ ...OK, status: 500 });
      assert.equal((await gate.send(visit(gate, ADDRESS))).status, 502);
      await gate.worker.setFaults([]);
      await posted(gate, VISITOR);
      await posted(gate, VISITOR);
      const [own, site] = [await rowOf(gate, VISITOR), await rowOf(gate, "*")];
      assert.deepEqual([own.calls, own.counted, own.nano_usd, own.settled], [1, COST, COST, 1]);
      assert.deepEqual([site.calls, site.counted, site.nano_usd, site.settled], [2, 2 * COST, 2 * COST, 2]);
    }));

  test("is not how it is where the policy does not say so", () =>
    withDay(policy, async (gate) => {
      await gate.worker.setFaults(down);
      assert.deepEqual(statuses(await sequence(gate, 3, () => visit(gate, ADDRESS))), { 503: 3 });
    }));
});

describe("a count", () => {
  const counted = async (gate) => {
    const [own, site] = [await rowOf(gate, VISITOR), await rowOf(gate, "*")];
    return { calls: [own.calls, site.calls], counted: [own.counted, site.counted] };
  };

  for (const [what, script, status] of [
    ["was not reached", { behaviour: "connection-refused" }, 502],
    ["failed", { ...OK, status: 500 }, 502],
    ["refused our key", { ...OK, status: 401 }, 502],
    ["refused the request", { ...OK, status: 400, body: { error: { message: "no" } } }, 400],
    ["answered nonsense", { ...OK, body: "<html>" }, 502],
    ["failed as the stream began", stream([failure("no")]), 502],
  ]) {
    test(`is given back by the object's alarm if the upstream ${what}`, () =>
      withDay(policy, async (gate) => {
        await gate.play(script);
        const body = what.includes("stream") ? { stream: true } : {};
        assert.equal((await gate.send(visit(gate, ADDRESS, { body }))).status, status);
        const before = await counted(gate);
        assert.deepEqual(before.calls, [1, 1]);
        await gate.worker.setFaults([]);
        await posted(gate, VISITOR);
        assert.deepEqual(await counted(gate), { calls: [0, 0], counted: [0, 0] });
        const { statements } = await gate.worker.counts();
        assert.deepEqual(statements.map(({ who, kind }) => `${who} ${kind}`), ["object post"]);
        await gate.worker.advance(RETRY);
        await gate.worker.object(VISITOR).alarm();
        assert.deepEqual(await counted(gate), { calls: [0, 0], counted: [0, 0] });
      }));
  }

  test("stays if the upstream took too long: it may have worked", () =>
    withDay(policy, async (gate) => {
      await gate.play({ ...OK, behaviour: "hang-before-headers" });
      assert.equal((await gate.send(visit(gate, ADDRESS))).status, 504);
      await released(gate, VISITOR);
      await gate.worker.advance(RETRY);
      await gate.worker.object(VISITOR).alarm();
      assert.deepEqual((await counted(gate)).calls, [1, 1]);
    }));
});
