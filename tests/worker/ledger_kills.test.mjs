// The process is killed between every two steps on the way of a charge to the ledger, and at any moment: in the end the
// ledger's totals are what the callers' own balances were charged.
//   KILLS=100 node --test tests/worker/ledger_kills.test.mjs
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { SECOND, eventually, json, plan, stock, subjectOf } from "./support/gate.mjs";
import { RETRY, startDay, visit, visitorOf } from "./support/day.mjs";

const KILLS = Number(process.env.KILLS ?? 30);
// Short, so that all kills are on one day.
const HOLD = 20 * SECOND;
const BUDGET = 1_000_000_000_000;
const MANY = 100_000;
const ADDRESS = "203.0.113.9";
const limits = { budget: stock("usd", "1000"), calls: stock("requests", MANY) };
const policy = {
  plans: { keyed: plan(limits), exempt: plan(limits), visitor: plan(limits, { daily_calls: MANY }) },
  callers: { ann: "exempt", bob: "keyed" },
  visitors: { plan: "visitor" },
  site: { daily_calls: MANY, exempt: ["exempt"] },
  bounds: { hold_ms: HOLD, first_byte_ms: 10_000, ledger_ms: 5_000, limiter_ms: 5_000 },
};

/** Where the process stands still until it is killed, and what is there then. */
const STEPS = [
  ["before the gate has counted", [{ at: "ledger.gate", effect: "hangs" }], "call"],
  ["when the gate has counted, and nobody knows", [{ at: "ledger.gate", effect: "hangs-after" }], "call"],
  ["before the settlement is delivered", [{ at: "limiter.settle", effect: "hangs" }], "call"],
  ["when the settlement is written", [], "settled"],
  ["when the batch could not be written", [{ at: "storage.put", effect: "fails" }], "alarm"],
  ["when the batch is written, before it is sent", [{ at: "ledger.post", effect: "hangs" }], "alarm"],
  ["when the batch is taken, before that is known", [{ at: "ledger.post", effect: "hangs-after" }], "alarm"],
  [
    "when the batch is known to be taken, before that is written",
    [{ at: "storage.put", effect: "passes" }, { at: "storage.put", effect: "fails" }],
    "alarm",
  ],
  ["when all is written", [], "told"],
];

describe(`a process that is killed ${KILLS} times`, () => {
  let gate;
  const dice = random(20_310_305);
  const callers = {
    ann: keyed("ann"),
    bob: keyed("bob"),
    visitor: {
      subject: visitorOf(ADDRESS),
      request: (body) => gate.send(visit(gate, ADDRESS, { body })),
      usage: visitorUsage,
    },
  };
  const names = Object.keys(callers);

  before(async () => {
    gate = await startDay(policy);
  });

  after(() => gate.stop());

  function keyed(name) {
    return { subject: subjectOf(name), request: (body) => gate.chat(name, body), usage: () => gate.usage(name) };
  }

  async function visitorUsage() {
    return json(await gate.send(gate.request(null, { path: "/v1/usage", headers: [["cf-connecting-ip", ADDRESS]] })));
  }

  /** Runs an object's alarm; whether the process lived through it does not matter. */
  const alarm = (name) => gate.worker.object(callers[name].subject).alarm().catch(() => {});
  const call = (name) => callers[name].request({ max_tokens: 50 + Math.floor(dice() * 200) });
  /** Whether the process stands still where it was told to. */
  const stands = async () => {
    const asked = [...(await gate.worker.commands()), ...(await gate.worker.counts()).statements];
    return asked.some(({ effect, done }) => effect === "hangs" || (effect === "hangs-after" && done));
  };

  /** What everybody's balances were charged, and what the ledger says of it, once nothing is under way. */
  async function totals() {
    for (let rings = 0; rings < 4; rings += 1) {
      await gate.worker.advance(rings === 0 ? HOLD : RETRY);
      await Promise.all(names.map(alarm));
    }
    const charged = {};
    for (const name of names) {
      const left = Object.fromEntries((await callers[name].usage()).limits.map((limit) => [limit.name, limit.left]));
      charged[callers[name].subject] = { usd: BUDGET - left.budget, settled: MANY - left.calls };
    }
    const sums = "sum(nano_usd) AS usd, sum(settled) AS settled, sum(calls) AS calls, sum(counted) AS counted";
    const rows = await gate.worker.sql(`SELECT key, ${sums} FROM ledger GROUP BY key`);
    return { charged, rows: Object.fromEntries(rows.map(({ key, ...row }) => [key, row])) };
  }

  async function check(where) {
    const { charged, rows } = await totals();
    const told = Object.fromEntries(Object.keys(charged).map((key) => [key, pick(rows[key])]));
    assert.deepEqual(told, charged, where);
    const sum = (name) => Object.values(charged).reduce((total, own) => total + own[name], 0);
    assert.deepEqual(pick(rows["*"]), { usd: sum("usd"), settled: sum("settled") }, where);
    // Whoever logged a charge was charged: the records are the least.
    const logged = gate.worker.calls.filter(({ charged: own, unsettled }) => own && !unsettled);
    const usd = logged.reduce((total, { charged: own }) => total + own.usd, 0);
    assert.ok(usd <= sum("usd"), `${where}: ${usd} logged, ${sum("usd")} told`);
    return sum("usd");
  }

  async function killAt([where, faults, kind], name) {
    await gate.play({ ...OK, body: { ...OK.body, usage: usage() } });
    const before = [call(name), call(name)];
    if (kind !== "call") await Promise.all(before);
    if (kind !== "call") await gate.record(await before[0]);
    if (kind === "alarm" || kind === "told") await gate.worker.advance(RETRY);
    await gate.worker.setFaults(faults);
    const under = kind === "call" ? call(name) : kind === "settled" ? undefined : alarm(name);
    if (kind === "told" || faults.some(({ effect }) => effect === "fails")) await under;
    else if (faults.length > 0) await eventually(where, stands);
    await gate.worker.restart();
    await gate.worker.setFaults([]);
    await Promise.allSettled([...before, under]);
  }

  function usage() {
    const [prompt, completion] = [Math.floor(dice() * 30), Math.floor(dice() * 400)];
    return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  }

  const steps = Math.ceil(KILLS * 0.7);
  test(`between two steps, ${steps} times`, async () => {
    for (let kill = 0; kill < steps; kill += 1) {
      const step = STEPS[kill % STEPS.length];
      const name = names[Math.floor(kill / STEPS.length + kill) % names.length];
      // The gate is not asked about a plan that is exempted.
      await killAt(step, step[1][0]?.at === "ledger.gate" && name === "ann" ? "bob" : name);
      await check(`kill ${kill + 1}, ${step[0]}`);
    }
  });

  test(`at any moment, ${KILLS - steps} times`, async () => {
    let usd = 0;
    for (let kill = steps; kill < KILLS; kill += 1) {
      await gate.play({ ...OK, body: { ...OK.body, usage: usage() } });
      const storm = Array.from({ length: 9 }, (_, at) => call(names[at % names.length]));
      await gate.worker.advance(RETRY);
      const alarms = names.map(alarm);
      await new Promise((resolve) => setTimeout(resolve, dice() * 60));
      await gate.worker.restart();
      await Promise.allSettled([...storm, ...alarms]);
      usd = await check(`kill ${kill + 1}`);
    }
    console.log(`  ${KILLS} kills: ${usd} billionths of a dollar charged, as many told`);
  });
});

const pick = ({ usd, settled } = { usd: 0, settled: 0 }) => ({ usd, settled });

/** Numbers that are the same in every run. */
function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
