// A provider that dies in the middle of many calls and comes back: each call is charged once, at the price of the one that
// answered it, and the dead one is not asked for every call.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startUpstream } from "./harness/upstream.mjs";
import { NANO_USD, SECOND, UPSTREAM_KEY, json, plan, stock, subjectOf } from "./support/gate.mjs";
import { posted, rowOf, startDay } from "./support/day.mjs";
import { DONE, ROLE, STOP, stream, text, usage } from "./support/sse.mjs";

const CALLS = 500;
const BATCH = 25;
/** The batches in the middle of which the first provider dies, and before which it is back. */
const [DIES, BACK] = [5, 14];
const OPEN = 30 * SECOND;
const FAILURES = 5;
/** What a token costs, in billionths of a dollar, by the name under which its provider knows the model. */
const PRICES = { alpha: NANO_USD, beta: { input: 3_000, output: 4_000 } };
const AT_MOST = 60 * SECOND;

/** The answer to a call, whole or streamed as it asks: it says who has given it, and what it used. */
function answerOf({ body }) {
  const asked = JSON.parse(body);
  const number = Number(/\d+/.exec(asked.messages[0].content)[0]);
  const [read, written] = [10 + number, 1 + (number % 50)];
  const content = `${asked.model} ${read} ${written}`;
  const delay = { delay_ms: 2 + (number % 5) };
  if (asked.stream) return { ...stream([ROLE, text(content), STOP, usage(read, written), DONE]), ...delay };
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  const said = { prompt_tokens: read, completion_tokens: written, total_tokens: read + written };
  const whole = { id: "c-31", object: "chat.completion", created: 1, model: asked.model, choices, usage: said };
  return { status: 200, headers: { "content-type": "application/json" }, body: whole, ...delay };
}

/** What the answer that a client has got costs; null if it is not whole. */
function costOf(reply) {
  const body = reply.body.toString();
  const streamed = reply.header("content-type").startsWith("text/event-stream");
  if (streamed && !body.endsWith(DONE)) return null;
  const [, name, read, written] = /(alpha|beta) (\d+) (\d+)/.exec(body);
  return Number(read) * PRICES[name].input + Number(written) * PRICES[name].output;
}

describe(`a provider that dies in the middle of ${CALLS} calls:`, () => {
  const own = {};
  before(async () => {
    [own.first, own.second] = await Promise.all([startUpstream(), startUpstream()]);
    for (const upstream of [own.first, own.second]) await upstream.answerWith(answerOf);
    const upstream = ({ origin }, more) => ({ base_url: `${origin}/v1`, secret: "LLM_API_KEY", ...more });
    const alpha = { input: "1", output: "2", max_output: 1_000, context: 1_000_000, encoding: "o200k" };
    const fallbacks = [{ upstream: "second", upstream_model: "beta", input: "3", output: "4" }];
    own.gate = await startDay({
      plans: { stock: plan({ budget: stock("usd", "100") }) },
      callers: { ann: "stock" },
      models: { alpha: { ...alpha, upstream: "first", fallbacks } },
      upstreams: {
        first: upstream(own.first, { retry: { attempts: 2, backoff_ms: 2 }, health: { failures: FAILURES, open_ms: OPEN } }),
        second: upstream(own.second),
      },
      ledger: {},
    });
  });
  after(() => Promise.all([own.gate.stop(), own.first.close(), own.second.close()]));

  /** One batch at once, plain and streamed in turn. */
  function batch(number) {
    const one = (_, place) => {
      const call = number * BATCH + place;
      const messages = [{ role: "user", content: `Call ${call}` }];
      return own.gate.chat("ann", { messages, stream: call % 2 === 1 });
    };
    return Promise.all(Array.from({ length: BATCH }, one));
  }

  test("none is charged twice or never, and the dead one is left alone", async () => {
    const { gate, first, second } = own;
    const began = performance.now();
    const replies = [];
    let whenDead = 0;
    for (let number = 0; number < CALLS / BATCH; number += 1) {
      if (number === BACK) {
        await first.listen();
        await gate.worker.advance(OPEN);
      }
      const going = batch(number);
      if (number === DIES) {
        await first.nextCall();
        await first.close();
      }
      replies.push(...(await going));
      if (number === DIES) whenDead = first.calls.length;
    }
    const took = performance.now() - began;
    assert.ok(took < AT_MOST, `it took ${took} ms`);
    assert.deepEqual(replies.filter(({ status }) => status !== 200).map(({ body }) => body.toString()), []);

    let total = 0;
    let broken = 0;
    for (const reply of replies) {
      const { charged, exact, upstream } = await gate.record(reply);
      const cost = costOf(reply);
      // A stream that the death has cut off ends with an error, and what was seen of it is charged.
      if (cost === null) {
        broken += 1;
        assert.deepEqual([upstream, exact ?? false], ["first", false]);
        assert.match(reply.body.toString(), /"code":"upstream_invalid"/);
      } else {
        assert.deepEqual([charged.usd, exact], [cost, true]);
      }
      total += charged?.usd ?? 0;
    }
    assert.ok(broken <= BATCH, `${broken} streams were cut off`);
    await gate.settled("ann");
    const { limits } = await gate.usage("ann");
    assert.equal(limits.find(({ name }) => name === "budget").left, 100 * 1e9 - total);
    assert.equal(gate.worker.calls.filter(({ route }) => route === "/v1/chat/completions").length, CALLS);
    await posted(gate, subjectOf("ann"));
    const row = await rowOf(gate, subjectOf("ann"));
    const free = replies.filter((reply) => gate.worker.calls.find(({ id }) => id === reply.header("x-request-id")).charged === undefined);
    assert.deepEqual([row.nano_usd, row.settled], [total, CALLS - free.length]);

    // While it was dead, its failures were found out by a few calls, not by each of the 200.
    const tries = gate.worker.calls.filter(({ upstream, tries: times = 1 }) => upstream === "second" && times > 1);
    assert.ok(tries.length >= 1 && tries.length <= 2 * BATCH, `${tries.length} calls have tried the dead one`);
    assert.equal(first.calls.length > whenDead, true, "it was asked again when it was back");
    const afterwards = replies.slice(BACK * BATCH + 1 * BATCH);
    assert.deepEqual(afterwards.filter((reply) => !/alpha \d/.test(reply.body.toString())), []);
    assert.ok(second.calls.length >= (BACK - DIES - 1) * BATCH);
    assert.ok([...first.calls, ...second.calls].every(({ headers }) => headers.authorization === `Bearer ${UPSTREAM_KEY}`));
    console.log(`  ${CALLS} calls in ${(took / 1_000).toFixed(1)} s, ${tries.length} of them tried the dead one, ${broken} streams were cut off`);
  });

  test("where both are dead a call fails in time, free of charge, and passes when one is back", async () => {
    const { gate, first, second } = own;
    await Promise.all([first.close(), second.close()]);
    const left = await gate.left("ann", "budget");
    const reply = await gate.chat("ann");
    assert.deepEqual([reply.status, json(reply).error.code], [502, "upstream_unreachable"]);
    assert.ok(reply.ms < 10 * SECOND, `it took ${reply.ms} ms`);
    await gate.settled("ann");
    assert.equal(await gate.left("ann", "budget"), left);
    await second.listen();
    await second.answerWith("ok");
    assert.equal((await gate.chat("ann")).status, 200);
  });
});
