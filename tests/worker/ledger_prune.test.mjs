// Old rows go by themselves: with the first admitted call of a day, and without its caller having to wait.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DAY, NOON, SECOND, eventually, plan, stock, subjectOf } from "./support/gate.mjs";
import { RETRY, TODAY, ledgerOf, rowOf, visit, withDay } from "./support/day.mjs";

const ADDRESS = "203.0.113.4";
const limits = { calls: stock("requests", 1_000) };
const policy = {
  plans: { visitor: plan(limits, { daily_calls: 40 }), keyed: plan(limits) },
  callers: { ann: "keyed" },
  visitors: { plan: "visitor" },
  ledger: { keep_days: 7, keep_user_days: 30 },
};
/** Visitors of so many days, each with a row; users and the site have theirs as well. */
const FILL = `WITH RECURSIVE back(days) AS (SELECT 1 UNION ALL SELECT days + 1 FROM back WHERE days < ?2),
  keys(key) AS (VALUES ('*'), ('user:ann'), ('visitor:aaaa'), ('visitor:aaaa~0123'), ('visitorish'))
  INSERT INTO ledger (day, key, calls) SELECT ?1 - days, key, 1 FROM back, keys`;

const fill = (gate, days, day = TODAY) => gate.worker.sql(FILL, day, days);
const call = (gate) => gate.send(visit(gate, ADDRESS));
const pruned = (gate, day = TODAY) =>
  eventually("old rows are deleted", async () => (await rowOf(gate, "*", day))?.pruned === 1);

/** How many days of rows there are, by the kind of key. */
async function kept(gate) {
  const keys = Object.keys(await ledgerOf(gate)).filter((at) => !at.startsWith(`${TODAY}/`));
  const days = (name) => keys.filter((at) => at.endsWith(`/${name}`)).length;
  const [visitor, member] = ["visitor:aaaa", "visitor:aaaa~0123"];
  const names = { site: "*", user: "user:ann", visitor, member, other: "visitorish" };
  return Object.fromEntries(Object.entries(names).map(([kind, name]) => [kind, days(name)]));
}

describe("the first admitted call of a day", () => {
  test("deletes rows that are older than they are kept, visitors' sooner", () =>
    withDay(policy, async (gate) => {
      await fill(gate, 40);
      assert.equal((await call(gate)).status, 200);
      await pruned(gate);
      assert.deepEqual(await kept(gate), { site: 30, user: 30, visitor: 7, member: 7, other: 30 });
      await gate.worker.setFaults([]);
      assert.equal((await call(gate)).status, 200);
      const { statements } = await gate.worker.counts();
      assert.deepEqual(statements.map(({ kind }) => kind), ["gate"], "a later call deletes again");
    }));

  test("is the first of every day", () =>
    withDay(policy, async (gate) => {
      for (const day of [TODAY, TODAY + 1, TODAY + 2]) {
        await gate.worker.setClock(NOON + (day - TODAY) * DAY);
        await fill(gate, 20, day - 9);
        assert.equal((await call(gate)).status, 200);
        await pruned(gate, day);
        const [{ oldest }] = await gate.worker.sql("SELECT min(day) AS oldest FROM ledger WHERE key LIKE 'visitor:%'");
        assert.ok(oldest >= day - 7);
        await gate.worker.sql("DELETE FROM ledger WHERE day < ?1", day - 8);
      }
    }));

  test("does not wait for it", () =>
    withDay(policy, async (gate) => {
      await fill(gate, 40);
      await gate.worker.setFaults([{ at: "ledger.prune", effect: "hangs" }]);
      const reply = await call(gate);
      assert.equal(reply.status, 200);
      assert.ok(reply.ms < 5_000, `${reply.ms} ms`);
      await gate.worker.setFaults([]);
      // One that did not come to its end is made up for by the next call.
      assert.equal((await call(gate)).status, 200);
      await pruned(gate);
    }));

  test("that could not delete leaves it to the next, and says so in the log", () =>
    withDay(policy, async (gate) => {
      await fill(gate, 40);
      await gate.worker.setFaults([{ at: "ledger.prune", effect: "fails" }]);
      assert.equal((await call(gate)).status, 200);
      const isLogged = () => gate.worker.lines.some((line) => line.includes("old rows were not deleted"));
      await eventually("it is logged", isLogged);
      assert.equal((await kept(gate)).visitor, 40);
      assert.equal((await call(gate)).status, 200);
      await pruned(gate);
      assert.equal((await kept(gate)).visitor, 7);
    }));

  test("is not one that is refused", () =>
    withDay({ ...policy, site: { daily_calls: 5 } }, async (gate) => {
      await fill(gate, 40);
      await gate.worker.sql("INSERT INTO ledger (day, key, calls) VALUES (?1, '*', 5)", TODAY);
      await gate.worker.setFaults([]);
      assert.equal((await call(gate)).status, 429);
      const { statements } = await gate.worker.counts();
      assert.deepEqual(statements.map(({ kind }) => kind), ["gate"]);
    }));
});

describe("where no gate is asked", () => {
  const keyed = { plans: { keyed: plan(limits) }, callers: policy.callers, ledger: policy.ledger };

  test("the first batch of a day deletes old rows, on the day of its entries", () =>
    withDay(keyed, async (gate) => {
      await fill(gate, 40);
      await gate.worker.setClock(NOON + DAY / 2 - SECOND);
      assert.equal((await gate.chat("ann")).status, 200);
      await gate.settled("ann");
      // It is told after midnight.
      await gate.worker.advance(RETRY);
      await gate.worker.object(subjectOf("ann")).alarm();
      await pruned(gate);
      const { user, visitor } = await kept(gate);
      assert.deepEqual([user, visitor], [30, 7]);
      await gate.worker.setFaults([]);
      assert.equal((await gate.chat("ann")).status, 200);
      await gate.settled("ann");
      await gate.worker.advance(RETRY);
      await gate.worker.object(subjectOf("ann")).alarm();
      await pruned(gate, TODAY + 1);
    }));
});
