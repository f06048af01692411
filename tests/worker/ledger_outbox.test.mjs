// What the caller's object tells the ledger after the gate: within its delay, exactly once, whatever fails meanwhile.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { NANO_USD, SECOND, eventually, plan, stock, subjectOf } from "./support/gate.mjs";
import { DONE, ROLE, STOP, stream, text, usage } from "./support/sse.mjs";
import { RETRY, posted, rowOf, startDay, statuses, visit, visitorOf, withDay } from "./support/day.mjs";

const HOLD = 120 * SECOND;
const COST = 10 * NANO_USD.input + 5 * NANO_USD.output;
const limits = { budget: stock("usd", "1000"), calls: stock("requests", 100_000) };
const quick = { calls: { unit: "requests", burst: 100, refill: 100, per: "second" } };
const policy = {
  plans: { keyed: plan(limits), exempt: plan(limits), visitor: plan(quick, { daily_calls: 50 }) },
  callers: { ann: "keyed", bob: "keyed", ...Object.fromEntries([..."abcdefgh"].map((name) => [name, "exempt"])) },
  visitors: { plan: "visitor" },
  site: { daily_calls: 1_000, exempt: ["exempt"] },
  bounds: { hold_ms: HOLD, first_byte_ms: 100_000, ledger_ms: 1_000 },
};

/** What of a row does not depend on when it was written. */
const amounts = ({ calls, refused, counted, settled, input_tokens, output_tokens, nano_usd }) => ({
  calls, refused, counted, settled, input: input_tokens, output: output_tokens, usd: nano_usd,
});
const times = (calls) => ({
  calls, refused: 0, counted: calls * COST, settled: calls, input: 10 * calls, output: 5 * calls, usd: calls * COST,
});

describe("the outbox of an object", () => {
  let gate;
  const amountsOf = async (name) => amounts(await rowOf(gate, subjectOf(name)));
  const alarm = (name) => gate.worker.object(subjectOf(name)).alarm();
  const posts = async () => (await gate.worker.counts()).statements.filter(({ kind }) => kind === "post");

  async function calls(name, count) {
    const replies = await Promise.all(Array.from({ length: count }, () => gate.chat(name)));
    assert.deepEqual(statuses(replies), { 200: count });
    await gate.settled(name);
  }

  before(async () => {
    gate = await startDay(policy);
  });

  after(() => gate.stop());

  test("is sent when its delay is over, not before, and all of it at once", async () => {
    await gate.worker.setFaults([]);
    await calls("a", 3);
    const { alarm: due } = await gate.worker.object(subjectOf("a")).stored();
    assert.equal(due, gate.worker.now + 10 * SECOND);
    await gate.worker.setClock(due - 1);
    await alarm("a");
    assert.equal(await rowOf(gate, subjectOf("a")), undefined);
    await gate.worker.setClock(due);
    await alarm("a");
    assert.deepEqual(await amountsOf("a"), times(3));
    assert.equal((await posts()).length, 1);
  });

  test("is taken once although the alarm comes twice, at once or later", async () => {
    await calls("b", 2);
    await gate.worker.advance(10 * SECOND);
    await Promise.all([alarm("b"), alarm("b")]);
    await gate.worker.advance(RETRY);
    await alarm("b");
    assert.deepEqual(await amountsOf("b"), times(2));
  });

  for (const effect of ["reply-lost", "fails", "hangs", "hangs-after", "twice"]) {
    const name = { "reply-lost": "c", fails: "d", hangs: "e", "hangs-after": "f", twice: "g" }[effect];
    test(`is taken once although the database's first answer ${effect}`, async () => {
      await calls(name, 2);
      await gate.worker.setFaults([{ at: "ledger.post", effect }]);
      await gate.worker.advance(10 * SECOND);
      await alarm(name);
      await calls(name, 1);
      await gate.worker.advance(RETRY - 1);
      await alarm(name);
      if (effect !== "twice") assert.equal((await posts()).length, 1, "it was sent again too early");
      for (let rings = 0; rings < 3; rings += 1) {
        await gate.worker.advance(RETRY);
        await alarm(name);
      }
      assert.deepEqual(await amountsOf(name), times(3));
      await gate.worker.setFaults([]);
    });
  }

  test("waits for a database that is down for an hour, while its caller goes on", async () => {
    await gate.worker.setFaults([{ at: "ledger.post", effect: "fails", times: "always" }]);
    let made = 0;
    for (let minute = 0; minute < 60; minute += 1) {
      if (minute % 3 === 0) {
        await calls("h", 1);
        made += 1;
      }
      await gate.worker.advance(60 * SECOND);
      await alarm("h");
    }
    assert.equal(await rowOf(gate, subjectOf("h")), undefined);
    const failed = (await posts()).length;
    assert.ok(failed >= 3 && failed <= 120, `tried ${failed} times in the hour`);
    await gate.worker.setFaults([]);
    // By the alarm that is armed, and within the hour.
    const { alarm: again } = await gate.worker.object(subjectOf("h")).stored();
    assert.ok(again > gate.worker.now - 60 * SECOND && again <= gate.worker.now + 3_600 * SECOND);
    await gate.worker.setClock(Math.max(again, gate.worker.now));
    await alarm("h");
    assert.deepEqual(await amountsOf("h"), times(made));
    // And there is nothing left to be told.
    const { values } = await gate.worker.object(subjectOf("h")).stored();
    const { outbox } = JSON.parse(values.account);
    assert.deepEqual([outbox.pending, outbox.sent], [[], null]);
  });

  test("tells what the object has refused", async () => {
    const heavy = { max_tokens: 1_000, messages: [{ role: "user", content: "x" }], n: 8 };
    await gate.worker.deploy(gate.env({ plans: { ...policy.plans, keyed: plan({ small: stock("requests", 2) }) } }));
    const replies = [];
    for (let call = 0; call < 5; call += 1) replies.push(await gate.chat("bob", call === 4 ? heavy : {}));
    assert.deepEqual(statuses(replies), { 200: 2, 429: 3 });
    await posted(gate, subjectOf("bob"));
    const row = await rowOf(gate, subjectOf("bob"));
    // The same refusal again is answered from the isolate's memory, and nobody is told of it.
    assert.deepEqual([row.calls, row.settled, row.refused], [2, 2, 2]);
    await gate.worker.deploy(gate.env());
  });
});

describe("a hold that ends by its deadline", () => {
  let gate;

  before(async () => {
    gate = await startDay(policy);
  });

  after(() => gate.stop());

  test("is posted at its estimate, and corrected by a settlement that comes late", async () => {
    let answer;
    const step = () => new Promise((resolve) => (answer = resolve));
    const events = [ROLE, text("Volga"), { wait_for_step: "late" }, STOP, usage(10, 5), DONE];
    await gate.play(stream(events), { step });
    let connection;
    const replying = gate.stream("ann", {}, { onOpen: (own) => (connection = own) });
    await eventually("the stream has begun", () => connection && answer);
    await connection.has("Volga");
    await gate.worker.advance(HOLD);
    await gate.worker.object(subjectOf("ann")).alarm();
    await gate.worker.advance(RETRY);
    await gate.worker.object(subjectOf("ann")).alarm();
    const early = await rowOf(gate, subjectOf("ann"));
    assert.deepEqual([early.calls, early.settled], [1, 1]);
    assert.ok(early.nano_usd > COST);
    assert.equal(early.counted, early.nano_usd);
    answer();
    const record = await gate.record(await replying);
    assert.deepEqual([record.held.usd, record.charged.usd], [early.nano_usd, COST]);
    await posted(gate, subjectOf("ann"));
    assert.deepEqual(amounts(await rowOf(gate, subjectOf("ann"))), times(1));
    assert.deepEqual(amounts(await rowOf(gate, "*")), times(1));
  });

  test("is posted although nobody ever calls again", async () => {
    await gate.play(OK);
    await gate.worker.setFaults([{ at: "limiter.settle", effect: "fails", times: "always" }]);
    const reply = await gate.send(visit(gate, "203.0.113.5"));
    const { held, unsettled } = await gate.record(reply);
    assert.ok(unsettled);
    await gate.worker.setFaults([]);
    const [key, object] = [visitorOf("203.0.113.5"), gate.worker.object(visitorOf("203.0.113.5"))];
    const ring = async () => {
      const { alarm } = await object.stored();
      await gate.worker.setClock(alarm);
      await object.alarm();
      return alarm;
    };
    await ring();
    await ring();
    const { calls, counted, nano_usd: usd, settled } = await rowOf(gate, key);
    assert.deepEqual({ calls, counted, usd, settled }, { calls: 1, counted: held.usd, usd: held.usd, settled: 1 });
    // Then it rests, and is forgotten.
    for (let rings = 0; rings < 3 && (await object.stored()).alarm; rings += 1) await ring();
    assert.deepEqual(await object.stored(), { values: {}, alarm: null });
    assert.equal((await rowOf(gate, key)).nano_usd, held.usd);
  });
});

describe("a busy caller", () => {
  test("is told of in one batch for each delay, not for each call", () =>
    withDay(policy, async (gate) => {
      await gate.worker.setFaults([]);
      const object = gate.worker.object(subjectOf("a"));
      // Every call ends while a batch is under way, and rings again.
      for (let second = 0; second < 30; second += 1) {
        await Promise.all([gate.chat("a"), object.alarm(), gate.chat("a")]);
        await gate.worker.advance(SECOND);
      }
      await gate.settled("a");
      await gate.worker.advance(RETRY);
      await object.alarm();
      const { statements } = await gate.worker.counts();
      assert.deepEqual(amounts(await rowOf(gate, subjectOf("a"))), times(60));
      assert.ok(statements.length <= 5, `${statements.length} batches in 30 s`);
    }));

  test("is told of by the alarm of the platform itself, soon", () =>
    withDay({ ...policy, ledger: { post_ms: 50 }, clock: null }, async (gate) => {
      await gate.chat("a");
      const row = await eventually("the call is in the ledger", async () => {
        const rows = await gate.worker.sql("SELECT * FROM ledger WHERE key = ?1", subjectOf("a"));
        return rows[0];
      });
      assert.deepEqual(amounts(row), times(1));
    }));
});
