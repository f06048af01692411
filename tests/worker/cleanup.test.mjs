// The alarm that cleans up after a caller who has rested: it comes about without being asked for, and nobody notices.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { DAY, Gate, NOON, SECOND, errorOf, plan, rateHeaders, subjectOf } from "./support/gate.mjs";

const HOLD = 300 * SECOND;
const GRACE = 600 * SECOND;
const REST = 600 * SECOND;
const plans = {
  rate: plan({
    rate: { unit: "requests", burst: 5, refill: 1, per: "second" },
    budget: { unit: "usd", burst: "1", refill: "0.001", per: "second" },
  }),
  day: plan({ visits: { unit: "requests", amount: 2, window: "day" } }),
};
const NAMES = { rate: ["ann", "ben", "ben-twin", "cid", "dot", "eve"], day: ["fay"] };
const callers = Object.fromEntries(Object.entries(NAMES).flatMap(([plan, names]) => names.map((name) => [name, plan])));
const NOTHING = { values: {}, alarm: null };

describe("the cleaning alarm", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ plans, callers, bounds: { hold_ms: HOLD, first_byte_ms: 100_000 } });
  });

  after(() => gate.stop());

  const object = (name) => gate.worker.object(subjectOf(name));
  const alarmOf = async (name) => (await object(name).stored()).alarm;

  async function passes(name) {
    assert.equal((await gate.chat(name)).status, 200);
    await gate.settled(name);
  }

  /** Lets the alarm come at the moment for which it is armed, until it has nothing more to do; tells when that was. */
  async function cleanedUp(name) {
    for (let rings = 0; rings < 4; rings += 1) {
      const { alarm } = await object(name).stored();
      if (alarm === null) return gate.worker.now;
      assert.ok(rings === 0 || alarm > gate.worker.now, "an alarm that moves itself into the past rings without end");
      // One that was due long ago has come late.
      await gate.worker.setClock(Math.max(alarm, gate.worker.now));
      await object(name).alarm();
    }
    return assert.fail("the alarm goes on moving itself");
  }

  test("is armed with the first call and not with those that follow, each of which writes two records", async () => {
    await gate.worker.setClock(NOON);
    await gate.worker.setFaults([]);
    assert.deepEqual(await object("ann").stored(), NOTHING);
    await passes("ann");
    const armed = await alarmOf("ann");
    assert.equal(armed, NOON + HOLD + GRACE + REST);
    for (let call = 0; call < 12; call += 1) {
      await gate.worker.advance(90 * SECOND);
      await passes("ann");
      assert.equal(await alarmOf("ann"), armed);
    }
    const { writes } = await gate.worker.counts();
    assert.deepEqual(writes, { records: 2 * 13, alarms: 1, deletions: 0 });
  });

  test("deletes everything once the account is full and has rested, at that very moment", async () => {
    await gate.worker.setClock(NOON);
    await passes("cid");
    await gate.worker.advance(20 * 60 * SECOND);
    await passes("cid");
    const { values, alarm } = await object("cid").stored();
    // Its balances are full sooner than the id of the call is forgotten.
    const idle = JSON.parse(values.account).ended.at(-1).until + REST;
    await gate.worker.setClock(alarm);
    await object("cid").alarm();
    assert.equal(await alarmOf("cid"), idle);
    await gate.worker.setClock(idle - 1);
    await object("cid").alarm();
    assert.equal(Object.keys((await object("cid").stored()).values).length, 1);
    assert.equal(await alarmOf("cid"), idle);
    await gate.worker.setClock(idle);
    await object("cid").alarm();
    assert.deepEqual(await object("cid").stored(), NOTHING);
  });

  test("changes nothing when it comes early, twice, late, or where nothing was ever stored", async () => {
    await gate.worker.setClock(NOON);
    await object("dot").alarm();
    await passes("dot");
    const before = await gate.usage("dot");
    for (let time = 0; time < 3; time += 1) {
      await object("dot").alarm();
      assert.deepEqual(await gate.usage("dot"), before);
    }
    await object("dot").evict();
    await object("dot").alarm();
    assert.deepEqual(await gate.usage("dot"), before);
    await gate.worker.advance(30 * DAY);
    for (let time = 0; time < 3; time += 1) {
      await object("dot").alarm();
      assert.equal((await gate.usage("dot")).limits[1].left, 5);
    }
    assert.deepEqual((await object("dot").stored()).values, {});
    await passes("dot");
    assert.equal(await alarmOf("dot"), gate.worker.now + HOLD + GRACE + REST);
  });

  test("waits for a call that is under way, for its grace, and for a debt", async () => {
    await gate.worker.setClock(NOON);
    await gate.play({ ...OK, behaviour: "hang-before-headers" });
    const arrived = gate.upstream.nextCall();
    const replying = gate.chat("eve");
    await arrived;
    await gate.worker.advance(HOLD + GRACE - 1);
    await object("eve").alarm();
    assert.equal(Object.keys((await object("eve").stored()).values).length, 1);
    await gate.play(OK);
    await gate.worker.restart();
    await replying;
    // A thousand and two seconds of refill.
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 1_000, total_tokens: 1_001_000 };
    await gate.play({ ...OK, body: { ...OK.body, usage } });
    await gate.worker.advance(DAY);
    const from = gate.worker.now;
    await passes("eve");
    await gate.play(OK);
    const [{ left, full_in_ms: full }] = (await gate.usage("eve")).limits;
    assert.deepEqual([left, full], [-2_000_000, 1_002 * SECOND]);
    assert.equal(await cleanedUp("eve"), from + full + REST);
  });

  test("keeps a window's count until the window is over", async () => {
    await gate.worker.setClock(NOON);
    await passes("fay");
    await passes("fay");
    const midnight = NOON + DAY / 2;
    await gate.worker.setClock(midnight - 1);
    await object("fay").alarm();
    const reply = await gate.chat("fay");
    assert.deepEqual([reply.status, reply.header("retry-after-ms")], [429, "1"]);
    assert.equal(await cleanedUp("fay"), midnight + REST);
  });

  test("is unnoticeable: a caller whose state was deleted hears what one whose state was kept hears", async () => {
    await gate.worker.setClock(NOON);
    await passes("ben");
    await passes("ben-twin");
    const at = await cleanedUp("ben");
    assert.deepEqual(await object("ben").stored(), NOTHING);
    assert.equal(Object.keys((await object("ben-twin").stored()).values).length, 1);
    for (const moment of [at, at + 1, at + 777, at + DAY]) {
      await gate.worker.setClock(moment);
      assert.deepEqual(await gate.usage("ben"), await gate.usage("ben-twin"));
    }
    for (let call = 0; call < 7; call += 1) {
      const [own, twin] = [await heard("ben"), await heard("ben-twin")];
      assert.deepEqual(own, twin);
      assert.equal(own.status, call < 5 ? 200 : 429);
      assert.deepEqual(await gate.usage("ben"), await gate.usage("ben-twin"));
    }
  });

  /** What a call's answer says, but for its id. */
  async function heard(name) {
    const reply = await gate.chat(name);
    await gate.settled(name);
    const wait = reply.header("retry-after-ms");
    const said = reply.status === 200 ? reply.body.toString() : errorOf(reply);
    return { status: reply.status, rates: rateHeaders(reply), wait, said };
  }
});
