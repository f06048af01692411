// Clients that leave, or stop reading, or stay for long.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { Gate, NANO_USD, NOON, eventually, plan, stock, subjectOf } from "./support/gate.mjs";
import { ROLE, answer, stream, text } from "./support/sse.mjs";

const HOLD = 300_000;
const COST = 10 * NANO_USD.input + 5 * NANO_USD.output;
const BEGINNING = [ROLE, text("Volga"), text(", Niger")];
const budget = { budget: stock("usd", "100") };
const plans = {
  cancel: plan(budget, { on_disconnect: "cancel" }),
  drain: plan(budget, { on_disconnect: "drain" }),
  slot: plan({ ...budget, open: { unit: "concurrency", amount: 1 } }),
};
const callers = { ann: "cancel", ben: "drain", cid: "cancel", dot: "slot", eve: "drain", fay: "cancel" };

/** The Worker for the tests of one suite. */
function gateOf(bounds) {
  const own = {};
  before(async () => {
    own.gate = await Gate.start({ plans, callers, bounds });
  });
  after(() => own.gate.stop());
  return own;
}

/** The record of a caller's one call, and that the usage call says the same. */
async function onlyRecord(gate, name) {
  const own = ({ subject, route }) => subject === subjectOf(name) && route.endsWith("/completions");
  const record = await eventually(`${name}'s call ends`, () => gate.worker.calls.find(own));
  await gate.settled(name);
  assert.equal(100_000_000_000 - (await gate.left(name, "budget")), record.charged.usd);
  return record;
}

describe("a client of a stream", () => {
  const own = gateOf({ first_byte_ms: 100_000, idle_ms: 100_000, drain_ms: 20_000, hold_ms: HOLD });

  test("that leaves has its upstream cancelled within a second, and pays for what was seen", async () => {
    const { gate } = own;
    await gate.play(stream(BEGINNING, { behaviour: "hang" }));
    const reply = await gate.stream("ann", {}, { leavesAfterEvent: 3 });
    assert.equal(reply.status, 200);
    const cancelled = await gate.upstream.calls.at(-1).cancelled;
    assert.ok(cancelled !== null && cancelled - reply.leftAt < 1_000, `${cancelled - reply.leftAt} ms`);
    const { held, charged, exact, client_left: left } = await onlyRecord(gate, "ann");
    assert.deepEqual([exact, left, charged.input, charged.output], [false, true, held.input, 4]);
  });

  test("that leaves while events go on and on has its upstream cancelled within a second too", async () => {
    const { gate } = own;
    await gate.play(stream([...BEGINNING, { chunks: [text("more"), { pause_ms: 5 }], times: 2_000 }]));
    const reply = await gate.stream("cid", {}, { leavesAfterEvent: 6 });
    const cancelled = await gate.upstream.calls.at(-1).cancelled;
    assert.ok(cancelled !== null && cancelled - reply.leftAt < 1_000, `${cancelled - reply.leftAt} ms`);
    const { charged, exact } = await onlyRecord(gate, "cid");
    assert.equal(exact, false);
    assert.ok(charged.output >= 6 && charged.output < 1_000, `${charged.output}`);
  });

  test("that leaves under a plan that drains pays exactly, and the upstream notices nothing", async () => {
    const { gate } = own;
    const left = Promise.withResolvers();
    const [first, ...rest] = answer("Volga", ", Niger");
    await gate.play(stream([first, { wait_for_step: "left" }, ...rest]), { step: () => left.promise });
    const reply = await gate.stream("ben", {}, { leavesAfterEvent: 1 });
    assert.ok(reply.leftAt);
    assert.equal((await gate.usage("ben")).open_holds, 1);
    left.resolve();
    assert.equal(await gate.upstream.calls.at(-1).cancelled, null);
    const { charged, exact, client_left: gone } = await onlyRecord(gate, "ben");
    assert.deepEqual([exact, gone, charged.usd], [true, true, COST]);
  });

  test("that leaves before an answer that is not streamed pays exactly, for the provider bills all of it", async () => {
    const { gate } = own;
    const left = Promise.withResolvers();
    await gate.play({ ...OK, wait_for_step: "left" }, { step: () => left.promise });
    const arrived = gate.upstream.nextCall();
    let connection;
    const replying = gate.chat("fay", {}, { onOpen: (opened) => (connection = opened) });
    const call = await arrived;
    connection.close();
    assert.equal((await replying).status, "none");
    left.resolve();
    assert.equal(await call.cancelled, null);
    const { charged, exact } = await onlyRecord(gate, "fay");
    assert.deepEqual([exact, charged.usd], [true, COST]);
  });

  test("that stays longer than a hold lasts keeps its slot and pays exactly", async () => {
    const { gate } = own;
    const open = [];
    // Each step is somewhat more than half of a hold; the hold is extended when the next event comes by.
    const step = async () => {
      await gate.worker.advance(HOLD * 0.6);
      open.push([(await gate.usage("dot")).open_holds, (await gate.chat("dot")).status]);
    };
    let connection;
    const entry = (word) => [text(word), { wait_for_client: word }, { wait_for_step: word }];
    const entries = ["one", "two", "three", "four"].flatMap(entry);
    const hooks = { step, clientHas: (word) => connection.has(word) };
    await gate.play(stream([ROLE, ...entries, ...answer("five").slice(1)]), hooks);
    const reply = await gate.stream("dot", {}, { onOpen: (opened) => (connection ??= opened) });
    assert.equal(gate.upstream.fault, undefined);
    assert.ok(reply.whole && reply.body.toString().endsWith("data: [DONE]\n\n"));
    assert.deepEqual(open, Array(4).fill([1, 429]));
    assert.ok(gate.worker.now - NOON > 2 * HOLD);
    const record = await gate.record(reply);
    assert.deepEqual([record.exact, record.charged.usd], [true, COST]);
    await gate.settled("dot");
    assert.equal((await gate.worker.commands()).filter(({ verb }) => verb === "extend").length, 4);
  });
});

describe("a client of a stream, where patience is short,", () => {
  const own = gateOf({ first_byte_ms: 1_400, idle_ms: 1_400, drain_ms: 300, hold_ms: 1_500 });

  test("that stops reading is given up after a while: the upstream is let go, and what was seen is paid", async () => {
    const { gate } = own;
    const much = [ROLE, { chunks: [text("x".repeat(60_000))], times: 2_000 }];
    await gate.play(stream(much));
    let connection;
    const conduct = { stopsReadingAfterEvent: 2, onOpen: (opened) => (connection = opened) };
    const reply = await gate.stream("ann", {}, conduct);
    assert.equal(reply.status, 200);
    assert.notEqual(await gate.upstream.calls.at(-1).cancelled, null);
    const { held, charged, exact } = await onlyRecord(gate, "ann");
    assert.equal(exact, false);
    // Never more than the call could have been charged for, whatever was seen.
    assert.deepEqual([charged.input, charged.output], [held.input, held.output]);
    connection.close();
  });

  test("that leaves under a plan that drains is not drained without end", async () => {
    const { gate } = own;
    await gate.play(stream(BEGINNING, { behaviour: "hang" }));
    await gate.stream("eve", {}, { leavesAfterEvent: 3 });
    assert.notEqual(await gate.upstream.calls.at(-1).cancelled, null);
    const { held, charged, exact } = await onlyRecord(gate, "eve");
    assert.deepEqual([exact, charged.input, charged.output], [false, held.input, 4]);
  });
});
