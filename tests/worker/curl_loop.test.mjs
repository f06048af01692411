// The promise of the README's loop: so many calls pass, and a refusal names the very millisecond of the next one.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { DAY, Gate, NOON, SECOND, errorOf, plan, rateHeaders, stock } from "./support/gate.mjs";
import { answer, stream } from "./support/sse.mjs";

const LOOP = { unit: "requests", burst: 5, refill: 30, per: "minute" };
const plans = {
  loop: plan({ rate: LOOP }),
  day: plan({ visits: { unit: "requests", amount: 2, window: "day" } }),
  month: plan({ visits: { unit: "requests", amount: 1, window: "month" } }),
  nothing: plan({ visits: { unit: "requests", amount: 0, window: "day" } }),
  money: plan({ budget: { unit: "usd", burst: "0.01", refill: "0.001", per: "second" } }),
  several: plan({
    rate: LOOP,
    words: { unit: "tokens", burst: 1_000, refill: 1, per: "second" },
    budget: stock("usd", "5"),
    open: { unit: "concurrency", amount: 9 },
  }),
  small: plan({ words: stock("output_tokens", 99) }),
};
const NAMES = {
  loop: ["ann", "ann-late", "ann-streams", "ann-flood"],
  day: ["dan", "dan-noon"],
  month: ["mia", "mia-leap"],
  nothing: ["nil"],
  money: ["max"],
  several: ["eve", "eve-streams"],
  small: ["sam"],
};
const callers = Object.fromEntries(Object.entries(NAMES).flatMap(([plan, names]) => names.map((name) => [name, plan])));
/** Words at which client libraries give up for good. */
const GIVE_UP = /billing|credit balance|usage quota|will reset at/i;

describe("a loop of calls", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ plans, callers });
  });

  after(() => gate.stop());

  const waits = ["retry-after", "retry-after-ms", "x-should-retry"];
  const waitOf = (reply) => waits.map((name) => reply.header(name));

  /** The same call, and one that asks for another amount: the first may be answered from memory, the second is not. */
  async function refused(name, wait, code = "rate_limit_exceeded") {
    for (const more of [{}, { max_tokens: 7 }]) {
      const reply = await gate.chat(name, more);
      assert.equal(reply.status, 429);
      assert.deepEqual(waitOf(reply).slice(0, 2), [String(Math.max(Math.ceil(wait / SECOND), 1)), String(wait)]);
      const error = errorOf(reply);
      assert.equal(error.code, code);
      assert.doesNotMatch(error.message, GIVE_UP);
    }
  }

  /** Calls that pass and have settled. */
  async function passes(name, times = 1, more = {}) {
    for (let time = 0; time < times; time += 1) assert.equal((await gate.chat(name, more)).status, 200);
    await gate.settled(name);
  }

  test("passes to the burst, is refused, and passes once more after exactly the announced wait", async () => {
    await gate.worker.setClock(NOON);
    await passes("ann", 5);
    const reply = await gate.chat("ann");
    assert.equal(reply.status, 429);
    assert.deepEqual(waitOf(reply), ["2", "2000", undefined]);
    assert.equal(reply.header("x-tollgate-limited-by"), "rate");
    assert.deepEqual(errorOf(reply), {
      message: "Limit `rate` reached on requests: limit 5, left 0, requested 1. Please try again in 2s.",
      type: "requests",
      param: null,
      code: "rate_limit_exceeded",
    });
    await gate.worker.advance(1_999);
    await refused("ann", 1);
    await gate.worker.advance(1);
    await passes("ann");
    await refused("ann", 2_000);
  });

  test("is told what is left of the wait, whatever came in between", async () => {
    await gate.worker.setClock(NOON);
    await passes("ann-late", 4);
    await gate.worker.advance(700);
    await passes("ann-late");
    for (const [step, wait] of [[0, 1_300], [1, 1_299], [900, 399], [398, 1]]) {
      await gate.worker.advance(step);
      await refused("ann-late", wait);
    }
    await gate.worker.advance(1);
    await passes("ann-late");
    await refused("ann-late", 2_000);
  });

  test("is the same for streams", async () => {
    await gate.worker.setClock(NOON);
    await gate.play(stream(answer("Volga.")));
    for (let time = 0; time < 5; time += 1) assert.equal((await gate.stream("ann-streams")).status, 200);
    await gate.settled("ann-streams");
    const reply = await gate.stream("ann-streams");
    assert.deepEqual([reply.status, ...waitOf(reply)], [429, "2", "2000", undefined]);
    assert.equal(reply.header("content-type"), "application/json");
    await gate.worker.advance(2_000);
    assert.equal((await gate.stream("ann-streams")).status, 200);
    await gate.play(OK);
  });

  test("that goes on being refused asks its object once, without a write, and the upstream never", async () => {
    await gate.worker.setClock(NOON);
    await passes("ann-flood", 5);
    await gate.worker.setFaults([]);
    const seen = gate.upstream.calls.length;
    for (let time = 0; time < 20; time += 1) assert.equal((await gate.chat("ann-flood")).status, 429);
    assert.deepEqual((await gate.worker.commands()).map(({ verb }) => verb), ["reserve"]);
    assert.equal((await gate.worker.counts()).writes.records, 0);
    assert.equal(gate.upstream.calls.length, seen);
  });

  test("against a day's window passes again at midnight in UTC and not a millisecond sooner", async () => {
    await gate.worker.setClock(Date.parse("2031-03-05T23:59:59.250Z"));
    await passes("dan", 2);
    await refused("dan", 750, "insufficient_quota");
    await gate.worker.setClock(Date.parse("2031-03-05T23:59:59.999Z"));
    await refused("dan", 1, "insufficient_quota");
    await gate.worker.setClock(Date.parse("2031-03-06T00:00:00.000Z"));
    await passes("dan", 2);
    await refused("dan", DAY, "insufficient_quota");
  });

  test("against a day's window is told not to retry by itself where the reset is far", async () => {
    await gate.worker.setClock(NOON);
    await passes("dan-noon", 2);
    const reply = await gate.chat("dan-noon");
    assert.deepEqual([reply.status, ...waitOf(reply)], [429, "43200", "43200000", "false"]);
    assert.equal(errorOf(reply).type, "insufficient_quota");
    assert.equal(reply.header("x-tollgate-limited-by"), "visits");
  });

  for (const [name, from, to] of [
    ["mia", "2031-12-31T12:00:00.000Z", "2032-01-01T00:00:00.000Z"],
    ["mia-leap", "2032-02-28T12:00:00.000Z", "2032-03-01T00:00:00.000Z"],
  ]) {
    test(`against a month's window passes again on the first of the next (${to})`, async () => {
      await gate.worker.setClock(Date.parse(from));
      await passes(name);
      await refused(name, Date.parse(to) - Date.parse(from), "insufficient_quota");
      await gate.worker.setClock(Date.parse(to) - 1);
      await refused(name, 1, "insufficient_quota");
      await gate.worker.setClock(Date.parse(to));
      await passes(name);
    });
  }

  test("against a cap of zero is refused without a wait", async () => {
    const reply = await gate.chat("nil");
    assert.deepEqual([reply.status, ...waitOf(reply)], [429, undefined, undefined, "false"]);
    assert.equal(errorOf(reply).code, "insufficient_quota");
  });

  test("waits for a debt to be paid off, to the millisecond", async () => {
    await gate.worker.setClock(NOON);
    // 900 tokens of output where 100 were held: 1.8 thousandths of a dollar, and the prompt makes 16 more.
    const used = { prompt_tokens: 16_000, completion_tokens: 900, total_tokens: 16_900 };
    await gate.play({ ...OK, body: { ...OK.body, usage: used } });
    await passes("max");
    await gate.play(OK);
    const { limits } = await gate.usage("max");
    assert.equal(limits[0].left, 10_000_000 - 17_800_000);
    const reply = await gate.chat("max");
    const held = Number(/requested \$([\d.]+)\./.exec(errorOf(reply).message)[1]) * 1e9;
    const wait = Math.ceil((7_800_000 + held) / 1_000);
    assert.deepEqual([reply.status, reply.header("retry-after-ms")], [429, String(wait)]);
    await gate.worker.advance(wait - 1);
    const last = await gate.chat("max");
    assert.deepEqual([last.status, last.header("retry-after-ms")], [429, "1"]);
    await gate.worker.advance(1);
    await passes("max");
  });

  test("that can never fit is told so, without a wait", async () => {
    const reply = await gate.chat("sam");
    assert.deepEqual([reply.status, ...waitOf(reply)], [400, undefined, undefined, undefined]);
    const { type, code, message } = errorOf(reply);
    assert.deepEqual([type, code], ["invalid_request_error", "request_exceeds_limit"]);
    assert.match(message, /`words`.*limit 99.*requested 100/);
    assert.equal(reply.header("x-tollgate-limited-by"), "words");
    assert.equal((await gate.usage("sam")).limits[0].left, 99);
    await passes("sam", 1, { max_tokens: 99 });
  });

  test("has its limits on success, on refusal and on a stream, in OpenAI's headers and in the IETF's", async () => {
    await gate.worker.setClock(NOON);
    const plain = await gate.chat("eve");
    await gate.play(stream(answer("Volga.")));
    const streamed = await gate.stream("eve-streams");
    await gate.play(OK);
    const shown = rateHeaders(plain);
    const { held } = await gate.record(plain);
    const words = held.input + held.output;
    assert.deepEqual(shown, {
      "x-ratelimit-limit-requests": "5",
      "x-ratelimit-remaining-requests": "4",
      "x-ratelimit-reset-requests": "2s",
      "x-ratelimit-limit-tokens": "1000",
      "x-ratelimit-remaining-tokens": String(1_000 - words),
      "x-ratelimit-reset-tokens": `${Math.floor(words / 60)}m${words % 60}s`,
      "ratelimit-policy": shown["ratelimit-policy"],
      ratelimit: shown.ratelimit,
    });
    for (const [name, policy, state] of [
      ["rate", "q=5;w=10", "r=4;t=2"],
      ["words", 'q=1000;w=1000;tollgate-unit="tokens"', `r=${1_000 - words};t=1`],
      ["budget", 'q=5000000;w=432000000000000;tollgate-unit="usd-micro"', null],
      ["open", 'q=9;qu="concurrent-requests"', "r=8,"],
    ]) {
      assert.ok(shown["ratelimit-policy"].includes(`"${name}";${policy}`), shown["ratelimit-policy"]);
      if (state) assert.ok(shown.ratelimit.includes(`"${name}";${state}`), shown.ratelimit);
    }
    assert.deepEqual(rateHeaders(streamed), shown);
    await gate.settled("eve");
    await passes("eve", 4, { max_tokens: 8 });
    const refusal = await gate.chat("eve");
    assert.equal(refusal.status, 429);
    assert.deepEqual(Object.keys(rateHeaders(refusal)), Object.keys(shown));
    assert.match(rateHeaders(refusal).ratelimit, /"rate";r=0;t=2/);
    const ids = [plain, streamed, refusal].map((reply) => reply.header("x-request-id"));
    assert.equal(new Set(ids).size, 3);
    for (const id of ids) assert.match(id, /^[0-9a-f-]{36}$/);
  });
});
