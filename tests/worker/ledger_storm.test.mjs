// The day's gate under many calls at once: exactly what a cap allows is admitted, and counted.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { LEDGER, start } from "./harness/worker.mjs";
import { DAY, NOON, plan } from "./support/gate.mjs";
import {
  TODAY, ledgerOf, posted, rowOf, sequence, statement, statuses, visit, visitorOf, withDay,
} from "./support/day.mjs";

const CLIENTS = 8;
const CALLS = 500;
const limits = { calls: { unit: "requests", burst: 1_000_000, refill: 1, per: "day" } };
const all = (count, one) => Promise.all(Array.from({ length: count }, (_, client) => one(client)));

/** A visitor plan with these caps, and a site with those. */
function policyOf(own, site) {
  const plans = { visitor: plan(limits, own), keyed: plan(limits) };
  return { plans, callers: { ann: "keyed" }, visitors: { plan: "visitor" }, site };
}

describe(`${CLIENTS} clients with ${CALLS} calls each:`, () => {
  test("one visitor is admitted exactly as often as the cap allows", () => {
    const cap = 1_000;
    return withDay(policyOf({ daily_calls: cap }, { daily_calls: 1_000_000 }), async (gate) => {
      const address = "203.0.113.7";
      const began = performance.now();
      const replies = (await all(CLIENTS, () => sequence(gate, CALLS, () => visit(gate, address)))).flat();
      const seconds = ((performance.now() - began) / 1_000).toFixed(1);
      assert.deepEqual(statuses(replies), { 200: cap, 429: CLIENTS * CALLS - cap });
      assert.equal(gate.upstream.calls.length, cap);
      const rows = await ledgerOf(gate);
      assert.equal(rows[`${TODAY}/${visitorOf(address)}`].calls, cap);
      assert.equal(rows[`${TODAY}/*`].calls, cap);
      for (const reply of replies.filter(({ status }) => status === 429)) {
        assert.equal(reply.header("x-tollgate-limited-by"), "daily");
        assert.equal(reply.header("retry-after"), "43200");
      }
      console.log(`  ${replies.length} calls of one visitor in ${seconds} s, ${cap} admitted`);
    });
  });

  test("many visitors together are admitted exactly as often as the site's ceiling allows", () => {
    const [cap, visitors] = [300, 80];
    return withDay(policyOf({ daily_calls: 20 }, { daily_calls: cap }), async (gate) => {
      const address = (client, number) => `198.51.100.${(client * 13 + number) % visitors}`;
      const storm = (client) => sequence(gate, 60, (number) => visit(gate, address(client, number)));
      const replies = (await all(CLIENTS, storm)).flat();
      assert.deepEqual(statuses(replies), { 200: cap, 429: CLIENTS * 60 - cap });
      assert.equal(gate.upstream.calls.length, cap);
      const rows = await gate.worker.sql("SELECT sum(calls) AS calls, max(calls) AS most FROM ledger WHERE key <> '*'");
      assert.equal(rows[0].calls, cap);
      assert.ok(rows[0].most <= 20);
      assert.equal((await rowOf(gate, "*")).calls, cap);
      // The ceiling binds callers with a key too.
      const keyed = await gate.chat("ann");
      assert.deepEqual([keyed.status, keyed.header("x-tollgate-limited-by")], [429, "site"]);
    });
  });

  test("midnight in the middle gives every day its own cap", () => {
    const cap = 40;
    const policy = { ...policyOf({ daily_calls: cap }, { daily_calls: 1_000 }), clock: NOON + DAY / 2 - 1 };
    return withDay(policy, async (gate) => {
      let answered = 0;
      const turn = async () => {
        answered += 1;
        if (answered === 2 * cap) await gate.worker.advance(1);
      };
      const storm = () => sequence(gate, 30, () => visit(gate, "2001:db8:1:2::3"), turn);
      const replies = (await all(CLIENTS, storm)).flat();
      assert.deepEqual(statuses(replies), { 200: 2 * cap, 429: CLIENTS * 30 - 2 * cap });
      for (const day of [TODAY, TODAY + 1]) {
        assert.equal((await rowOf(gate, "*", day)).calls, cap);
        assert.equal((await rowOf(gate, visitorOf("2001:db8:1:2::/64", day), day)).calls, cap);
      }
    });
  });
});

describe("the statement and its read-then-write version, over the same database:", () => {
  let worker;
  const GATE = statement("gate");
  const values = (day, key) => [day, key, "visitor", 7, 200, null, 1_000_000, null, 1];

  before(async () => {
    worker = await start({ env: {}, bindings: { LEDGER } });
  });

  after(() => worker.stop());

  test("every call that the statement admits has a number of its own", async () => {
    const numbers = [];
    const one = async () => {
      for (let call = 0; call < 40; call += 1) {
        const rows = await worker.sql(GATE, ...values(1, "visitor:a"));
        const site = rows.find(({ key }) => key === "*");
        if (site) numbers.push(site.calls);
      }
    };
    await all(CLIENTS, one);
    assert.deepEqual(numbers.sort((one, other) => one - other), Array.from({ length: 200 }, (_, at) => at + 1));
    const rows = await worker.sql("SELECT key, calls, refused, counted FROM ledger WHERE day = 1 ORDER BY key");
    assert.deepEqual(rows, [
      { key: "*", calls: 200, refused: 0, counted: 1_400 },
      { key: "visitor:a", calls: 200, refused: 120, counted: 1_400 },
    ]);
  });

  test("reading first and writing afterwards loses calls and admits more than the cap", async () => {
    let admitted = 0;
    const count = async (key, calls) => {
      const text = `INSERT INTO ledger (day, key, calls) VALUES (2, ?1, ?2)
        ON CONFLICT (day, key) DO UPDATE SET calls = excluded.calls`;
      await worker.sql(text, key, calls);
    };
    const one = async () => {
      for (let call = 0; call < 40; call += 1) {
        const rows = await worker.sql("SELECT key, calls FROM ledger WHERE day = 2");
        const calls = (key) => rows.find((row) => row.key === key)?.calls ?? 0;
        if (calls("visitor:a") >= 200) continue;
        admitted += 1;
        await Promise.all([count("visitor:a", calls("visitor:a") + 1), count("*", calls("*") + 1)]);
      }
    };
    await all(CLIENTS, one);
    const [{ calls }] = await worker.sql("SELECT calls FROM ledger WHERE day = 2 AND key = '*'");
    console.log(`  read-then-write: ${admitted} admitted against a cap of 200, ${calls} counted`);
    assert.ok(admitted > 200, `${admitted} admitted`);
    assert.ok(calls < admitted, `${calls} counted of ${admitted}`);
  });
});

describe("a ceiling in money", () => {
  const CAP = 20_000_000;
  const held = (calls) => calls.reduce((sum, { held: { usd } }) => sum + usd, 0);
  const charged = (calls) => calls.reduce((sum, call) => sum + call.charged.usd, 0);

  test("is passed by no more than what settled above its estimate, and that counts against the rest of the day", () =>
    withDay(policyOf({}, { daily_usd: "0.02" }), async (gate) => {
      const answers = [2, 40, 700].map((output) => ({
        ...OK,
        body: { ...OK.body, usage: { prompt_tokens: 10, completion_tokens: output, total_tokens: 10 + output } },
      }));
      const address = (client) => `198.51.100.${client}`;
      const price = (client, number) => ({ body: { max_tokens: [20, 100, 333, 900][(client + number) % 4] } });
      let before = 0;
      for (const round of [1, 2, 3, 4]) {
        await gate.play(answers[round % 3]);
        const storm = (client) => sequence(gate, 12, (number) => visit(gate, address(client), price(client, number)));
        const replies = (await all(CLIENTS, storm)).flat();
        const answered = replies.filter(({ status }) => status === 200);
        const calls = await Promise.all(answered.map((reply) => gate.record(reply)));
        const [{ counted }] = await gate.worker.sql("SELECT counted FROM ledger WHERE key = '*'");
        // Until something is posted, what was admitted holds its estimates.
        assert.equal(counted, before + held(calls));
        if (calls.length > 0) assert.ok(counted <= CAP, `${counted} counted`);
        if (statuses(replies)[429]) assert.ok(counted + 2_000_000 > CAP, "refused although there was room");
        for (let client = 0; client < CLIENTS; client += 1) await posted(gate, visitorOf(address(client)));
        const row = await rowOf(gate, "*");
        assert.equal(row.counted, before + charged(calls));
        assert.equal(row.nano_usd, row.counted);
        before = row.counted;
      }
      const ended = gate.worker.calls.filter(({ charged }) => charged);
      const excess = ended.reduce((sum, call) => sum + Math.max(call.charged.usd - call.held.usd, 0), 0);
      assert.ok(excess > 0);
      assert.ok(charged(ended) <= CAP + excess, `${charged(ended)} charged, ${excess} above estimates`);
      assert.equal((await gate.send(visit(gate, "192.0.2.1", { body: { max_tokens: 900 } }))).status, 429);
      console.log(`  ${charged(ended)} of ${CAP} charged, ${excess} of it above estimates`);
    }));
});

describe("a plan that is exempted from the ceiling", () => {
  const plans = { inner: plan(limits, { daily_calls: 3, daily_usd: "1" }), keyed: plan(limits) };
  const policy = { plans, callers: { ann: "inner", bob: "keyed" }, site: { daily_calls: 2, exempt: ["inner"] } };

  test("counts, settles and gives back for itself alone", () =>
    withDay(policy, async (gate) => {
      assert.equal((await gate.chat("bob")).status, 200);
      await gate.settled("bob");
      await posted(gate, "user:bob");
      const before = await rowOf(gate, "*");
      assert.deepEqual(statuses([await gate.chat("ann"), await gate.chat("ann")]), { 200: 2 });
      await gate.play({ ...OK, status: 500 });
      assert.equal((await gate.chat("ann")).status, 502);
      await gate.settled("ann");
      await posted(gate, "user:ann");
      const [own, site] = [await rowOf(gate, "user:ann"), await rowOf(gate, "*")];
      assert.deepEqual([own.calls, own.settled, own.counted], [2, 2, own.nano_usd]);
      assert.deepEqual([site.calls, site.counted], [before.calls, before.counted]);
      // The record of the whole day has it all the same.
      assert.equal(site.nano_usd, before.nano_usd + own.nano_usd);
      await gate.play(OK);
      assert.equal((await gate.chat("ann")).status, 200);
      const refused = await gate.chat("ann");
      assert.deepEqual([refused.status, refused.header("x-tollgate-limited-by")], [429, "daily"]);
      assert.deepEqual(statuses([await gate.chat("bob"), await gate.chat("bob")]), { 200: 1, 429: 1 });
    }));
});
