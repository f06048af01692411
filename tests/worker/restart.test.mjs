// What outlives the process: a machine that stops in the middle changes no balance and admits nothing twice.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { Gate, NOON, NANO_USD, plan, stock, subjectOf } from "./support/gate.mjs";
import { ROLE, stream, text } from "./support/sse.mjs";

const HOLD = 300_000;
const GRACE = 600_000;
const plans = {
  stock: plan({ budget: stock("usd", "1"), calls: stock("requests", 10), open: { unit: "concurrency", amount: 10 } }),
  rate: plan({ rate: { unit: "requests", burst: 2, refill: 30, per: "minute" } }),
};
const callers = {
  ...Object.fromEntries(["ann", "ben", "cid", "dot", "eve", "fay", "hal"].map((name) => [name, "stock"])),
  gus: "rate",
};
const BUDGET = 1_000_000_000;
const COST = 10 * NANO_USD.input + 5 * NANO_USD.output;

describe("a restart", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ plans, callers, bounds: { hold_ms: HOLD, first_byte_ms: 100_000 } });
  });

  after(() => gate.stop());

  /** How many requests and how much money is left, and what is open. */
  async function state(name) {
    const { limits, open_holds: open } = await gate.usage(name);
    const left = Object.fromEntries(limits.map((limit) => [limit.name, limit.left]));
    return { budget: left.budget, calls: left.calls, open };
  }

  test("between a reservation and its settlement keeps the estimate, and frees the slot at its deadline", async () => {
    await gate.play({ ...OK, behaviour: "hang-before-headers" });
    const arrived = gate.upstream.nextCall();
    const replying = gate.chat("ann");
    await arrived;
    const before = await state("ann");
    assert.deepEqual([before.calls, before.open], [9, 1]);
    await gate.worker.restart();
    assert.equal((await replying).status, "none");
    assert.deepEqual(await state("ann"), before);
    await gate.worker.advance(HOLD - 1);
    assert.equal((await state("ann")).open, 1);
    await gate.worker.advance(1);
    assert.deepEqual(await state("ann"), { ...before, open: 0 });
    await gate.worker.advance(GRACE);
    assert.deepEqual(await state("ann"), { ...before, open: 0 });
    await gate.worker.setClock(NOON);
  });

  test("in the middle of a stream breaks it off visibly and keeps the estimate", async () => {
    await gate.play(stream([ROLE, text("Volga")], { behaviour: "hang" }));
    let connection;
    const arrived = gate.upstream.nextCall();
    const replying = gate.stream("ben", {}, { onOpen: (own) => (connection = own) });
    await arrived;
    await connection.has("Volga");
    const before = await state("ben");
    await gate.worker.restart();
    const reply = await replying;
    assert.equal(reply.status, 200);
    assert.equal(reply.whole, false);
    assert.deepEqual(await state("ben"), before);
    assert.equal(before.open, 1);
    await gate.play(OK);
  });

  test("right after an answer leaves the estimate or the true cost, nothing else", async () => {
    await gate.play(OK);
    for (let calls = 9; calls >= 7; calls -= 1) {
      const before = await state("cid");
      const reply = await gate.chat("cid");
      await gate.worker.restart();
      assert.equal(reply.status, 200);
      const after = await state("cid");
      const spent = before.budget - after.budget;
      const { held } = gate.worker.calls.findLast(({ subject, held }) => subject === subjectOf("cid") && held) ?? {};
      if (after.open === before.open) assert.equal(spent, COST);
      else assert.ok(spent > COST && (held === undefined || spent === held.usd), `${spent}`);
      assert.equal(after.calls, calls);
    }
  });

  test("after a settlement changes nothing", async () => {
    await gate.play(OK);
    await gate.record(await gate.chat("dot"));
    await gate.worker.restart();
    assert.deepEqual(await state("dot"), { budget: BUDGET - COST, calls: 9, open: 0 });
  });

  test("among many calls admits none beyond what the bucket holds", async () => {
    await gate.play({ ...OK, behaviour: "hang-before-headers" });
    const seen = gate.upstream.calls.length;
    const first = Array.from({ length: 20 }, () => gate.chat("eve"));
    while (gate.upstream.calls.length < seen + 4) await gate.upstream.nextCall();
    await gate.worker.restart();
    await Promise.all(first);
    const reached = gate.upstream.calls.length - seen;
    const { calls } = await state("eve");
    assert.ok(calls <= 10 - reached, `${reached} reached the upstream, ${calls} are left`);
    await gate.play(OK);
    const second = await Promise.all(Array.from({ length: 20 }, () => gate.chat("eve")));
    assert.equal(second.filter(({ status }) => status === 200).length, calls);
  });

  test("shortens or lengthens no wait that was announced", async () => {
    await gate.play(OK);
    for (const status of [200, 200, 429]) assert.equal((await gate.chat("gus")).status, status);
    await gate.settled("gus");
    await gate.worker.advance(500);
    await gate.worker.restart();
    const refused = await gate.chat("gus");
    assert.deepEqual([refused.status, refused.header("retry-after-ms")], [429, "1500"]);
    await gate.worker.advance(1_499);
    assert.equal((await gate.chat("gus")).header("retry-after-ms"), "1");
    await gate.worker.restart();
    await gate.worker.advance(1);
    assert.equal((await gate.chat("gus")).status, 200);
    await gate.worker.setClock(NOON);
  });

  test("of the object alone is not noticed: what was open is settled as if nothing had been", async () => {
    let answer;
    const asked = new Promise((resolve) => (answer = resolve));
    await gate.play({ ...OK, wait_for_step: "answer" }, { step: () => asked });
    const arrived = gate.upstream.nextCall();
    const replying = gate.chat("fay");
    await arrived;
    const before = await gate.usage("fay");
    await gate.worker.object(subjectOf("fay")).evict();
    assert.deepEqual(await gate.usage("fay"), before);
    answer();
    assert.equal((await replying).status, 200);
    await gate.settled("fay");
    assert.deepEqual(await state("fay"), { budget: BUDGET - COST, calls: 9, open: 0 });
    await gate.worker.object(subjectOf("fay")).evict();
    assert.deepEqual(await state("fay"), { budget: BUDGET - COST, calls: 9, open: 0 });
  });
});

/** A record to the letter as builds before this one have stored it: six of ten calls spent, one of them still open. */
const RECORD = JSON.stringify({
  v: 1,
  at: NOON,
  balances: [
    {
      limit: { name: "calls", unit: "requests", shape: { bucket: { burst: 10, refill: 1, per: "day" } } },
      spent: { bucket: { spent: 6, carry: 0 } },
    },
  ],
  holds: [
    { id: "open", made_at: NOON, expires_at: NOON + 1_000, held: [{ limit: "calls", amount: 1 }] },
  ],
  ended: [{ id: "gone", until: NOON + 60_000 }],
  alarm_at: NOON + 1_800_000,
});

describe("a record that an earlier build has stored", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ plans: { stock: plans.stock }, callers: { ann: "stock", ben: "stock" } });
  });

  after(() => gate.stop());

  const calls = async (name) => [await gate.left(name, "calls"), (await gate.usage(name)).open_holds];

  test("is read, goes on, and is kept", async () => {
    const object = gate.worker.object(subjectOf("ann"));
    await object.write("account", RECORD);
    assert.deepEqual(await calls("ann"), [4, 1]);
    await gate.worker.advance(1_000);
    assert.deepEqual(await calls("ann"), [4, 0]);
    assert.equal((await gate.chat("ann")).status, 200);
    await gate.settled("ann");
    await gate.worker.restart();
    assert.deepEqual(await calls("ann"), [3, 0]);
    assert.equal(JSON.parse((await object.stored()).values.account).v, 1);
  });

  test("of a version that is not known is refused and left as it is", async () => {
    const object = gate.worker.object(subjectOf("ben"));
    const newer = RECORD.replace('"v":1', '"v":999');
    await object.write("account", newer);
    const seen = gate.upstream.calls.length;
    const reply = await gate.chat("ben");
    assert.equal(reply.status, 503);
    assert.equal(gate.upstream.calls.length, seen);
    await object.alarm();
    assert.deepEqual((await object.stored()).values, { account: newer });
  });
});
