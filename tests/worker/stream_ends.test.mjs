// Streams that do not end well: the client sees it, the upstream is let go, and nothing stays held.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Gate, NANO_USD, errorOf, plan, stock } from "./support/gate.mjs";
import { DONE, EVENT_STREAM, ROLE, failure, stream, text, usage } from "./support/sse.mjs";

const PATIENT = 60_000;
/** How much silence ends a stream, where that is what a test is about. */
const SILENCE = 300;
/** A bound passes between one and two of its lengths after the last piece; the rest is for a machine that is busy. */
const AT_MOST = 2 * SILENCE + 5_000;
/** What was written: 4 tokens by the vocabulary of the model. */
const BEGINNING = [ROLE, text("Volga"), text(", Niger")];
const SEEN = 4;

/** The Worker for the tests of one suite. */
function gateOf(bounds) {
  const own = {};
  before(async () => {
    const plans = { stock: plan({ budget: stock("usd", "100") }) };
    own.gate = await Gate.start({ plans, callers: { ann: "stock" }, bounds: { hold_ms: 600_000, ...bounds } });
  });
  after(() => own.gate.stop());
  return own;
}

/** Streams; tells the reply, what was written down, and that the usage call says the same. */
async function streamed({ gate }, script) {
  await gate.play(script);
  const before = await gate.left("ann", "budget");
  const reply = await gate.stream("ann");
  const record = await gate.record(reply);
  await gate.settled("ann");
  assert.equal(before - (await gate.left("ann", "budget")), record.charged?.usd ?? 0);
  assert.ok(reply.ms < AT_MOST, `it took ${reply.ms} ms`);
  return { reply, record };
}

/** The events in one piece, then nothing more: only the silence after it can be too long. */
const thenSilence = (events) => stream(events.length > 0 ? [events.join("")] : [], { behaviour: "hang" });

/** What follows the beginning: one event with the error, and no end marker. */
function errorAfter(reply, beginning) {
  const body = reply.body.toString();
  assert.ok(reply.whole);
  assert.ok(body.startsWith(beginning.join("")), body);
  assert.doesNotMatch(body, /\[DONE\]/);
  const event = /^data: (.*)\n\n$/.exec(body.slice(beginning.join("").length));
  assert.ok(event, body);
  return errorOf({ body: Buffer.from(event[1]) });
}

/** The prompt as it was held, and the output that was seen. */
function chargedForWhatWasSeen({ held, charged, exact }, output = SEEN) {
  assert.equal(exact, false);
  assert.deepEqual([charged.input, charged.output], [held.input, output]);
  assert.equal(charged.usd, held.input * NANO_USD.input + output * NANO_USD.output);
}

const BREAKS = {
  "whose upstream stops short": stream(BEGINNING),
  "whose upstream resets the connection": stream(BEGINNING, { behaviour: "reset" }),
};
/** Streams that are none from their first event on. */
const NOTHINGS = {
  "begins with an error": [stream([failure("The engine is on fire."), DONE]), "upstream_failed"],
  "begins with an error after a field of its own": [stream([`id: 1\n${failure("No.")}`]), "upstream_failed"],
  "ends before it has begun": [stream([]), "upstream_invalid"],
  "is reset before it has begun": [stream([], { behaviour: "reset" }), "upstream_invalid"],
  "has no events in it": [{ ...EVENT_STREAM, sse: ["Internal error"] }, "upstream_invalid"],
};

function isAnError(reply, record, status, code) {
  assert.equal(reply.status, status);
  assert.equal(reply.header("content-type"), "application/json");
  const error = errorOf(reply);
  assert.deepEqual([error.type, error.code], ["server_error", code]);
  assert.deepEqual([record.verdict, record.charged], [code, undefined]);
}

describe("a stream that does not end well", () => {
  const own = gateOf({ first_byte_ms: PATIENT, idle_ms: PATIENT });

  for (const [name, script] of Object.entries(BREAKS)) {
    test(`${name} ends in an error and without an end marker, and is charged for what was seen`, async () => {
      const { reply, record } = await streamed(own, script);
      assert.equal(reply.status, 200);
      const error = errorAfter(reply, BEGINNING);
      assert.deepEqual([error.type, error.code], ["server_error", "upstream_invalid"]);
      assert.equal(record.verdict, "upstream_broke_off");
      chargedForWhatWasSeen(record);
    });
  }

  test("but has said what it cost so far is charged that, and no less than what was seen", async () => {
    const total = '"usage":{"prompt_tokens":9,"completion_tokens":4},"choices"';
    const running = [...BEGINNING, text("!").replace('"choices"', total)];
    const { reply, record } = await streamed(own, stream(running));
    errorAfter(reply, running);
    assert.deepEqual([record.exact, record.charged.input, record.charged.output], [false, 9, 5]);
  });

  for (const index of ["null", '"0"', "0.0"]) {
    test(`but whose events have an index like ${index} is charged for what was seen all the same`, async () => {
      const events = BEGINNING.map((event) => event.replace('"index":0', `"index":${index}`));
      const { reply, record } = await streamed(own, stream(events));
      errorAfter(reply, events);
      chargedForWhatWasSeen(record);
    });
  }

  test("and breaks off before any output costs nothing", async () => {
    const { reply, record } = await streamed(own, stream([ROLE], { behaviour: "reset" }));
    assert.equal(reply.status, 200);
    assert.equal(record.charged, undefined);
  });

  test("but with an error of the upstream's own passes that error on, and nothing after it", async () => {
    const error = failure("The engine is on fire.");
    const { reply, record } = await streamed(own, stream([...BEGINNING, error, usage(900, 900), DONE]));
    assert.equal(reply.body.toString(), [...BEGINNING, error].join(""));
    assert.equal(record.verdict, "upstream_failed");
    chargedForWhatWasSeen(record);
  });

  test("with a comment before its error has begun, so the error is an event", async () => {
    const error = failure("The engine is on fire.");
    const { reply, record } = await streamed(own, stream([": hello\n\n", error]));
    assert.equal(reply.status, 200);
    assert.ok(reply.body.toString().includes(error), reply.body.toString());
    assert.doesNotMatch(reply.body.toString(), /\[DONE\]/);
    assert.equal(record.charged, undefined);
  });

  for (const [name, [script, code]] of Object.entries(NOTHINGS)) {
    test(`because it ${name} is an error with a status of its own, and costs nothing`, async () => {
      const { reply, record } = await streamed(own, script);
      isAnError(reply, record, 502, code);
    });
  }
});

describe("a stream that falls silent", () => {
  const own = gateOf({ first_byte_ms: PATIENT, idle_ms: SILENCE });

  test("ends in an error and without an end marker, and is charged for what was seen", async () => {
    const { reply, record } = await streamed(own, thenSilence(BEGINNING));
    assert.equal(errorAfter(reply, BEGINNING).code, "upstream_timeout");
    assert.notEqual(await own.gate.upstream.calls.at(-1).cancelled, null);
    chargedForWhatWasSeen(record);
  });

  test("before any output costs nothing", async () => {
    const { reply, record } = await streamed(own, thenSilence([ROLE]));
    assert.equal(errorAfter(reply, [ROLE]).code, "upstream_timeout");
    assert.equal(record.charged, undefined);
  });
});

describe("a stream whose first byte has the same bound as the silence after it", () => {
  const BOUND = 2 * SILENCE;
  const own = gateOf({ first_byte_ms: BOUND, idle_ms: BOUND });

  // The timer that was armed for the first byte runs on where it can: it must wake whoever waits by then.
  for (const [name, events] of [["an event", [ROLE]], ["a comment and an event", [": hello\n\n", ROLE]]]) {
    test(`is let go after ${name} by that bound`, async () => {
      const { reply } = await streamed(own, thenSilence(events));
      assert.ok(reply.ms >= BOUND - 1, `${reply.ms} ms`);
      assert.equal(errorAfter(reply, events).code, "upstream_timeout");
      assert.notEqual(await own.gate.upstream.calls.at(-1).cancelled, null);
    });
  }

  for (const [name, events] of [["never begins", []], ["begins an event and never ends it", ["data: {"]]]) {
    test(`is an error if it ${name}, and costs nothing`, async () => {
      const { reply, record } = await streamed(own, thenSilence(events));
      isAnError(reply, record, 504, "upstream_timeout");
    });
  }
});
