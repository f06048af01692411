// What the ledger costs: statements on a call's path, rows written in the database, and writes of the objects.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { SECOND, plan, stock, subjectOf } from "./support/gate.mjs";
import { TODAY, rowOf, sequence, startDay, statuses, visit, visitorOf, withDay } from "./support/day.mjs";

const limits = { calls: stock("requests", 1_000_000) };
const capped = (calls) => plan(limits, { daily_calls: calls });
const plans = { keyed: plan(limits), capped: capped(100_000), visitor: capped(2) };
const callers = { ann: "keyed", bob: "capped", eve: "keyed" };

/** What was asked on calls' paths, and what was written. */
async function costs(gate) {
  const { statements, writes } = await gate.worker.counts();
  const rows = (kind) => statements.filter((own) => own.kind === kind).reduce((sum, { written }) => sum + written, 0);
  const asked = statements.filter(({ who }) => who === "worker").map(({ kind }) => kind);
  const posts = statements.filter(({ kind }) => kind === "post").length;
  return { asked, posts, gateRows: rows("gate"), postRows: rows("post"), ...writes };
}

describe("on the path of a call", () => {
  const path = async (policy, act) => {
    const asked = [];
    await withDay({ plans, callers, ...policy }, async (gate) => {
      const one = async (send) => {
        await gate.worker.setFaults([]);
        const reply = await send();
        if (reply.status === 200 && reply.body.includes("choices")) await gate.record(reply);
        asked.push([reply.status, (await costs(gate)).asked.filter((kind) => kind !== "prune")]);
      };
      await act(gate, one);
    });
    return asked;
  };

  test("there is no statement for a key whose plan has no daily rule, where there is no ceiling", async () => {
    const asked = await path({ ledger: {}, visitors: { plan: "visitor" } }, async (gate, one) => {
      await one(() => gate.chat("ann"));
      await one(() => gate.stream("ann"));
      await one(() => gate.send(gate.request("ann", { path: "/v1/usage" })));
    });
    assert.deepEqual(asked, [[200, []], [200, []], [200, []]]);
  });

  test("nor for a plan that is exempted from the ceiling", async () => {
    const site = { daily_calls: 5, exempt: ["keyed"] };
    const asked = await path({ site }, (gate, one) => one(() => gate.chat("ann")));
    assert.deepEqual(asked, [[200, []]]);
  });

  test("there is one for whoever has a rule, and none for a refusal that is remembered", async () => {
    const asked = await path({ visitors: { plan: "visitor" }, site: { daily_calls: 100 } }, async (gate, one) => {
      for (let call = 0; call < 4; call += 1) await one(() => gate.send(visit(gate, "203.0.113.1")));
      await one(() => gate.chat("ann"));
      await one(() => gate.chat("bob", { model: "unknown" }));
    });
    const once = ["gate"];
    assert.deepEqual(asked, [[200, once], [200, once], [429, once], [429, []], [200, once], [404, []]]);
  });
});

describe("1,000 calls", () => {
  let gate;

  before(async () => {
    gate = await startDay({ plans, callers, visitors: { plan: "visitor" }, site: { daily_calls: 1_000_000 } });
  });

  after(() => gate.stop());

  /** Lets an object's alarm ring if it is due, as the platform would. */
  async function ring(subject) {
    const { alarm } = await gate.worker.object(subject).stored();
    if (alarm !== null && alarm <= gate.worker.now) await gate.worker.object(subject).alarm();
  }

  function show(what, { gateRows, postRows, posts, records, alarms, deletions }) {
    console.log(
      `  ${what}: ${gateRows} rows by the gate, ${postRows} rows in ${posts} batches, ` +
        `${records} records, ${alarms} alarms set, ${deletions} objects deleted`,
    );
  }

  test("of one busy user in 100 s write 2 rows each at the gate, and next to nothing afterwards", async () => {
    await gate.worker.setFaults([]);
    for (let second = 0; second < 100; second += 2) {
      const replies = await sequence(gate, 20, () => gate.request("bob", chat()));
      assert.deepEqual(statuses(replies), { 200: 20 });
      await gate.worker.advance(2 * SECOND);
      await ring(subjectOf("bob"));
    }
    await gate.settled("bob");
    await gate.worker.advance(10 * SECOND);
    await ring(subjectOf("bob"));
    const found = await costs(gate);
    show("one user", found);
    const row = await rowOf(gate, subjectOf("bob"));
    assert.deepEqual([row.calls, row.settled], [1_000, 1_000]);
    assert.equal(found.gateRows, 2_000);
    // A batch every ten seconds, and two rows for each.
    assert.ok(found.posts <= 12 && found.postRows <= 24, `${found.posts} batches`);
    // A record for the reservation and one for the settlement; a batch writes three, and sets the alarm twice.
    assert.ok(found.records <= 2_000 + 3 * 12, `${found.records} records`);
    assert.ok(found.alarms <= 4 * 12, `${found.alarms} alarms`);
  });

  test("of 1,000 visitors, one each, write two rows at the gate and two afterwards", async () => {
    await gate.worker.setFaults([]);
    const address = (number) => `10.1.${number >> 8}.${number & 255}`;
    const clients = Array.from({ length: 4 }, (_, client) =>
      sequence(gate, 250, (number) => visit(gate, address(4 * number + client))),
    );
    const replies = (await Promise.all(clients)).flat();
    assert.deepEqual(statuses(replies), { 200: 1_000 });
    await Promise.all(replies.map((reply) => gate.record(reply)));
    await gate.worker.advance(10 * SECOND);
    for (let number = 0; number < 1_000; number += 1) await ring(visitorOf(address(number)));
    const found = await costs(gate);
    show("1,000 visitors", found);
    const [{ rows, settled }] = await gate.worker.sql(
      "SELECT count(*) AS rows, sum(settled) AS settled FROM ledger WHERE day = ?1 AND key LIKE 'visitor:%'",
      TODAY,
    );
    assert.deepEqual([rows, settled], [1_000, 1_000]);
    assert.deepEqual([found.gateRows, found.postRows, found.posts], [2_000, 2_000, 1_000]);
    // Reservation, settlement, and three for the batch; the alarm for the deadline, the batch and the rest.
    assert.ok(found.records <= 5_000, `${found.records} records`);
    assert.ok(found.alarms <= 4_000, `${found.alarms} alarms`);
  });

  function chat() {
    const body = { model: "alpha", messages: [{ role: "user", content: "Name three rivers." }], max_tokens: 100 };
    return { method: "POST", path: "/v1/chat/completions", body };
  }
});
