// Calls that come in at once: what a limit admits does not depend on how they interleave.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { Gate, errorOf, json, plan, stock } from "./support/gate.mjs";
import { answer, stream } from "./support/sse.mjs";

const CALLS = 200;
const plans = {
  counted: plan({ calls: stock("requests", 40) }),
  priced: plan({ budget: stock("usd", "0.0045") }),
  few: plan({ calls: stock("requests", 30) }),
  slots: plan({ open: { unit: "concurrency", amount: 3 } }),
  loose: plan({ calls: stock("requests", 1_000) }),
};
const callers = {
  ann: "counted",
  ben: "priced",
  cid: "few",
  "cid/2": "few",
  dot: "slots",
  fay: "counted",
  gus: "counted",
  ...Object.fromEntries(Array.from({ length: 20 }, (_, place) => [`one-${place}`, "loose"])),
};

describe("calls at once", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ plans, callers, bounds: { limiter_ms: 5_000 } });
  });

  after(() => gate.stop());

  /**
   * Sends all of them at once. The upstream answers none before each of them has either reached it or been refused, so
   * every reservation is made while all the others are open.
   */
  async function allAtOnce(count, send, script = OK) {
    const everyone = Promise.withResolvers();
    let done = 0;
    const one = () => {
      done += 1;
      if (done === count) everyone.resolve();
    };
    const hooks = {
      allArrived: () => {
        one();
        return everyone.promise;
      },
    };
    await gate.play({ ...script, answer_when: "all-arrived" }, hooks);
    const sendOne = async (place) => {
      const reply = await send(place);
      if (reply.status !== 200) one();
      return reply;
    };
    const replies = await Promise.all(Array.from({ length: count }, (_, place) => sendOne(place)));
    await gate.play(OK);
    return replies;
  }

  const ofStatus = (replies, status) => replies.filter((reply) => reply.status === status);

  test("of one key are admitted to exactly what the bucket holds", async () => {
    const seen = gate.upstream.calls.length;
    const replies = await allAtOnce(CALLS, () => gate.chat("ann"));
    assert.deepEqual([200, 429].map((status) => ofStatus(replies, status).length), [40, 160]);
    assert.equal(gate.upstream.calls.length - seen, 40);
    await gate.settled("ann");
    assert.equal(await gate.left("ann", "calls"), 0);
    for (const reply of ofStatus(replies, 429)) assert.equal(reply.header("x-tollgate-limited-by"), "calls");
  });

  test("are admitted as long as their holds fit into the budget, streamed or not", async () => {
    const body = { model: "alpha", messages: [{ role: "user", content: "Name three rivers." }], max_tokens: 100 };
    const counting = gate.request("ben", { method: "POST", path: "/v1/tokens/count", body });
    const { nano_usd: held } = json(await gate.send(counting)).hold;
    const budget = await gate.left("ben", "budget");
    const fit = Math.floor(budget / held);
    const send = (place) => (place % 2 === 0 ? gate.chat("ben") : gate.stream("ben"));
    const replies = await allAtOnce(CALLS, send, stream(answer("Volga.")));
    assert.deepEqual([200, 429].map((status) => ofStatus(replies, status).length), [fit, CALLS - fit]);
    await gate.settled("ben");
    // Each did cost its 10 tokens of prompt and 5 of answer.
    assert.equal(await gate.left("ben", "budget"), budget - fit * 20_000);
  });

  const faulty = (effect) =>
    gate.worker.setFaults(["reserve", "settle"].map((verb) => ({ at: `limiter.${verb}`, effect, times: CALLS / 4 })));

  test("are counted once each, although questions arrive twice", async () => {
    await faulty("twice");
    const replies = await allAtOnce(CALLS, () => gate.chat("fay"));
    assert.deepEqual([200, 429].map((status) => ofStatus(replies, status).length), [40, 160]);
    await gate.settled("fay");
    assert.equal(await gate.left("fay", "calls"), 0);
    await gate.worker.setFaults([]);
  });

  test("are counted once each, although answers get lost, some of them beyond the one repetition", async () => {
    await faulty("reply-lost");
    const replies = await allAtOnce(CALLS, () => gate.chat("gus"));
    const [passed, refused, lost] = [200, 429, 503].map((status) => ofStatus(replies, status).length);
    assert.equal(passed + refused + lost, CALLS);
    assert.ok(passed > 0 && passed <= 40, `${passed} passed`);
    await gate.settled("gus");
    assert.equal(await gate.left("gus", "calls"), 40 - passed);
    await gate.worker.setFaults([]);
  });

  test("of two keys of one user share what that user has", async () => {
    const replies = await allAtOnce(60, (place) => gate.chat(place % 2 === 0 ? "cid" : "cid/2"));
    assert.equal(ofStatus(replies, 200).length, 30);
    await gate.settled("cid");
    assert.deepEqual(await Promise.all(["cid", "cid/2"].map((name) => gate.left(name, "calls"))), [0, 0]);
    assert.equal((await gate.chat("cid/2")).status, 429);
  });

  test("of many users share nothing", async () => {
    const replies = await allAtOnce(60, (place) => gate.chat(`one-${place % 20}`));
    assert.equal(ofStatus(replies, 200).length, 60);
    for (const name of ["one-0", "one-7", "one-19"]) {
      await gate.settled(name);
      assert.equal(await gate.left(name, "calls"), 997);
    }
  });

  test("are bounded by the slots that the plan has, and a slot is free again with the end of its call", async () => {
    const replies = await allAtOnce(8, () => gate.chat("dot"));
    const refused = ofStatus(replies, 429);
    assert.deepEqual([ofStatus(replies, 200).length, refused.length], [3, 5]);
    for (const reply of refused) {
      assert.deepEqual([reply.header("retry-after"), reply.header("x-tollgate-limited-by")], ["1", "open"]);
      const { type, code } = errorOf(reply);
      assert.deepEqual([type, code], ["requests", "rate_limit_exceeded"]);
    }
    await gate.settled("dot");
    assert.equal(await gate.left("dot", "open"), 3);
    assert.equal(ofStatus(await allAtOnce(3, () => gate.stream("dot"), stream(answer("Volga."))), 200).length, 3);
  });
});
