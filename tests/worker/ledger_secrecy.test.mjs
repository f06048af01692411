// What is kept and logged of callers: nothing that tells who they are, or what they said.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { NOON, UPSTREAM_KEY, json, keyOf, plan, stock, subjectOf } from "./support/gate.mjs";
import { RETRY, TODAY, VISITOR_SECRET, startDay, visit, visitorOf } from "./support/day.mjs";

const ADDRESSES = ["203.0.113.88", "198.51.77.201", "2001:db8:77:88::9"];
const PROMPT = "Name three rivers that nobody has heard of.";
const ANSWER = "Xyzzyquux, Plughfrobnitz.";
const WRONG_KEY = "a-wrong-key-of-somebody";
const limits = { calls: stock("requests", 100) };
const policy = {
  plans: {
    visitor: plan(limits, { daily_calls: 40 }),
    network: plan({ all: stock("requests", 100) }),
    keyed: plan(limits),
  },
  callers: { ann: "keyed" },
  visitors: { plan: "visitor", tokens: { shared_plan: "network" } },
  site: { daily_calls: 1_000 },
};
const hex = (text) => createHash("sha256").update(text).digest("hex");

describe("what is kept of callers", () => {
  let gate;
  let token;

  before(async () => {
    gate = await startDay(policy);
    const message = { role: "assistant", content: ANSWER };
    await gate.play({ ...OK, body: { ...OK.body, choices: [{ index: 0, message, finish_reason: "stop" }] } });
    const body = { messages: [{ role: "user", content: PROMPT }] };
    for (const address of ADDRESSES) await gate.send(visit(gate, address, { body }));
    const headers = [["cf-connecting-ip", ADDRESSES[0]]];
    const asked = gate.request(null, { method: "POST", path: "/v1/visitor", headers });
    token = json(await gate.send(asked)).token;
    await gate.send(visit(gate, ADDRESSES[0], { body, headers: [["x-tollgate-visitor", token]] }));
    await gate.send(visit(gate, ADDRESSES[1], { body, headers: [["x-tollgate-visitor", token]] }));
    await gate.send(visit(gate, ADDRESSES[0], { body, headers: [["authorization", `Bearer ${WRONG_KEY}`]] }));
    await gate.send(visit(gate, ADDRESSES[0], { body: { ...body, max_tokens: "many" } }));
    await gate.chat("ann", body);
    // What goes wrong is logged, too.
    await gate.worker.setFaults([
      { at: "ledger.gate", effect: "fails", times: 2 },
      { at: "limiter.settle", effect: "fails", times: 2 },
    ]);
    await gate.send(visit(gate, ADDRESSES[1], { body }));
    await gate.chat("ann", body);
    await gate.chat("ann", body);
    await gate.play({ ...OK, status: 500, body: { error: { message: `${PROMPT} ${UPSTREAM_KEY}` } } });
    await gate.send(visit(gate, ADDRESSES[2], { body }));
    await gate.worker.setFaults([{ at: "ledger.post", effect: "fails" }]);
    await gate.worker.advance(RETRY);
    for (const subject of [visitorOf(ADDRESSES[0]), visitorOf(ADDRESSES[1]), subjectOf("ann")]) {
      await gate.worker.object(subject).alarm();
      await gate.worker.advance(RETRY);
      await gate.worker.object(subject).alarm();
    }
  });

  after(() => gate.stop());

  const forbidden = () => [
    ...ADDRESSES, "2001:db8:77:88", "203.0.113", ...ADDRESSES.map((text) => hex(text).slice(0, 32)),
    PROMPT, "three rivers", ANSWER, "Xyzzyquux",
    keyOf("ann"), hex(keyOf("ann")), WRONG_KEY, UPSTREAM_KEY, VISITOR_SECRET, token, token.split(".")[3],
  ];

  test("in the database and in the objects has no address, no key and no prompt", async () => {
    const rows = await gate.worker.sql("SELECT count(*) AS rows FROM ledger");
    assert.ok(rows[0].rows >= 5);
    const stored = gate.worker.stored();
    // It is what was meant to be looked at: rows and records are in it.
    for (const there of [visitorOf(ADDRESSES[0]), subjectOf("ann"), '"outbox"', "CREATE TABLE ledger"]) {
      assert.ok(stored.includes(there), `${there} is not stored`);
    }
    for (const text of forbidden()) assert.ok(!stored.includes(text), `${text} is stored`);
  });

  test("in the log has none either", () => {
    const log = gate.worker.lines.join("\n");
    for (const there of [visitorOf(ADDRESSES[0]), "limiter_unavailable", "was not taken", "left to its deadline"]) {
      assert.ok(log.includes(there), `${there} is not logged`);
    }
    for (const text of forbidden()) assert.ok(!log.includes(text), `${text} is logged`);
  });

  test("leads back to no address of a /16 without the secret, and to the one with it", async () => {
    const [{ key }] = await gate.worker.sql("SELECT key FROM ledger WHERE key = ?1", visitorOf(ADDRESSES[1]));
    const leaked = key.slice("visitor:".length);
    const guesses = (hashOf) => {
      const found = [];
      for (let low = 0; low < 65_536; low += 1) {
        const address = `198.51.${low >> 8}.${low & 255}`;
        if (hashOf(address).some((hash) => hash.startsWith(leaked))) found.push(address);
      }
      return found;
    };
    const keyed = (secret) => (address) => {
      const mac = createHmac("sha256", secret).update(`subject\0${TODAY}\0${address}\0`);
      return [mac.digest("hex")];
    };
    const plain = (address) => [address, `${TODAY}${address}`, `subject\0${TODAY}\0${address}\0`].map(hex);
    assert.deepEqual(guesses(keyed(VISITOR_SECRET)), [ADDRESSES[1]]);
    assert.deepEqual(guesses(plain), []);
    for (const secret of ["", "secret", "another secret of visitors", UPSTREAM_KEY]) {
      assert.deepEqual(guesses(keyed(secret)), [], secret);
    }
    assert.equal(Math.floor(gate.worker.now / 86_400_000), Math.floor(NOON / 86_400_000));
  });
});
