// What an upstream streams reaches the client byte for byte, as it comes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bytesOf } from "./harness/upstream.mjs";
import { Gate, NANO_USD, json, plan, rateHeaders, stock } from "./support/gate.mjs";
import { DONE, EVENT_STREAM, ROLE, STOP, answer, stream, text, usage } from "./support/sse.mjs";

const ASKED = { stream_options: { include_usage: true } };
const COST = 10 * NANO_USD.input + 5 * NANO_USD.output;
const RIVERS = ["Волга, ", "黄河, ", "नील 🏞️ ", "Loire."];
const withEnds = (end, events) => events.map((event) => event.replaceAll("\n", end));
const inPieces = (size, events) => {
  const bytes = Buffer.from(events.join(""));
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, place) =>
    bytes.subarray(place * size, (place + 1) * size).toString("base64"),
  );
  return { ...EVENT_STREAM, sse_base64: pieces };
};

/** Streams by what is special about them; all of them cost the same. */
const STREAMS = {
  "lines that end in LF": stream(answer(...RIVERS)),
  "lines that end in CRLF": stream(withEnds("\r\n", answer(...RIVERS))),
  "lines that end in CR": stream(withEnds("\r", answer(...RIVERS))),
  "comments before, between and after events": stream([
    ": connected\n\n",
    ROLE,
    ":\n",
    ": PROCESSING\n\n",
    ...answer(...RIVERS).slice(1, -1),
    ": bye\n\n",
    DONE,
  ]),
  "other fields, several data lines and empty lines": stream([
    "retry: 3000\nid: 1\n\n\n\n",
    `event: message\nid: 2\n${ROLE}`,
    'data:{"choices":[{"index":0,\ndata: "delta":{"content":"Volga"}}]}\n\n',
    ...answer(...RIVERS),
  ]),
  "members and events that nobody knows": stream([
    'data: {"vendor":{"queue":3}}\n\n',
    "event: ping\ndata: {}\n\n",
    "data: not JSON\n\n",
    ...answer(...RIVERS),
  ]),
  "data that is no object": stream(["data: [1,2]\n\n", 'data: 7\n\ndata: "[DONE]"\n\n', ...answer(...RIVERS)]),
  "a byte order mark": stream(["\uFEFF", ...answer(...RIVERS)]),
  "characters that are split over chunks": inPieces(3, answer(...RIVERS)),
  "chunks of one byte": inPieces(1, answer("Волга 🏞️")),
  "all events in one chunk": stream([answer(...RIVERS).join("")]),
  "an event of a mebibyte": stream(answer("Loire ", "r".repeat(1_048_576))),
};

describe("a stream", () => {
  let gate;
  let connection;
  const hooks = { clientHas: (text) => connection.has(text) };

  before(async () => {
    gate = await Gate.start({
      plans: { stock: plan({ budget: stock("usd", "100") }) },
      callers: { ann: "stock" },
      bounds: { first_byte_ms: 60_000, idle_ms: 60_000, hold_ms: 600_000 },
    });
  });

  after(() => gate.stop());

  const send = (more) => gate.stream("ann", more, { onOpen: (own) => (connection = own) });

  /** Streams, and tells what it cost as the usage call has it. */
  async function streamed(script, more = {}) {
    await gate.play(script, hooks);
    const before = await gate.left("ann", "budget");
    const reply = await send(more);
    await gate.settled("ann");
    assert.equal(reply.status, 200);
    assert.ok(reply.whole);
    return { reply, cost: before - (await gate.left("ann", "budget")), sent: json(gate.upstream.calls.at(-1)) };
  }

  for (const [name, script] of Object.entries(STREAMS)) {
    test(`with ${name} arrives byte for byte, and is charged what it cost`, async () => {
      const { reply, cost } = await streamed(script, ASKED);
      assert.ok(reply.body.equals(bytesOf(script)), reply.body.subarray(0, 2_000).toString());
      assert.equal(cost, COST);
    });
  }

  for (const [name, end] of Object.entries({ LF: "\n", CRLF: "\r\n", CR: "\r" })) {
    test(`of which nobody asked for the usage is asked for it, and loses that one event (${name})`, async () => {
      const script = stream(withEnds(end, [": hello\n\n", ...answer(...RIVERS)]));
      const { reply, cost, sent } = await streamed(script);
      assert.deepEqual(sent.stream_options, { include_usage: true });
      assert.ok(reply.body.equals(bytesOf(script, [script.sse.length - 2])), reply.body.toString());
      assert.doesNotMatch(reply.body.toString(), /usage/);
      assert.equal(cost, COST);
    });
  }

  test("whose client refuses the usage is asked for it all the same, and nothing is shown", async () => {
    const unasked = { stream_options: { include_usage: false } };
    const { reply, cost, sent } = await streamed(stream(answer("Volga.")), unasked);
    assert.deepEqual(sent.stream_options, { include_usage: true });
    assert.doesNotMatch(reply.body.toString(), /usage/);
    assert.equal(cost, COST);
  });

  test("whose usage comes on an event with output keeps that event", async () => {
    const last = STOP.replace('"choices"', '"usage":{"prompt_tokens":10,"completion_tokens":5},"choices"');
    const script = stream([ROLE, text("Volga."), last, DONE]);
    const { reply, cost } = await streamed(script);
    assert.ok(reply.body.equals(bytesOf(script)));
    assert.equal(cost, COST);
  });

  for (const [name, cut] of [["one", -1], ["both", -2]]) {
    test(`whose last event lacks ${name} of its line ends gets them`, async () => {
      const entries = answer("Volga.");
      const whole = entries.join("");
      entries.push(entries.pop().slice(0, cut));
      const { reply, cost } = await streamed(stream(entries), ASKED);
      assert.equal(reply.body.toString(), whole);
      assert.equal(cost, COST);
    });
  }

  test("arrives chunk by chunk, each before the next one is sent", async () => {
    const seen = (word) => ({ wait_for_client: word });
    const script = stream([
      ": waiting\n\n",
      seen(": waiting"),
      ROLE,
      seen('"role"'),
      text("Volga"),
      seen("Volga"),
      text("Niger"),
      seen("Niger"),
      // Comments are passed on at once too, and so are the parts of an event that have ended.
      ": still here\n\n",
      seen("still here"),
      STOP,
      usage(10, 5),
      DONE,
    ]);
    const { reply } = await streamed(script, ASKED);
    assert.equal(gate.upstream.fault, undefined);
    assert.ok(reply.body.equals(bytesOf(script)));
  });

  test("ends with its end marker, although the upstream keeps the connection open", async () => {
    const { reply, cost } = await streamed(stream(answer("Volga."), { behaviour: "hang" }), ASKED);
    assert.equal(reply.body.toString(), answer("Volga.").join(""));
    assert.equal(cost, COST);
    assert.notEqual(await gate.upstream.calls.at(-1).cancelled, null);
  });

  test("ends with its end marker, and nothing that comes after it is passed on", async () => {
    const { reply, cost } = await streamed(stream([...answer("Volga."), text("more"), usage(900, 900)]), ASKED);
    assert.equal(reply.body.toString(), answer("Volga.").join(""));
    assert.equal(cost, COST);
  });

  test("without an end marker, but with a reason for its end, ends as it did", async () => {
    const script = stream([ROLE, text("Volga."), STOP, usage(10, 5)]);
    const { reply, cost } = await streamed(script, ASKED);
    assert.ok(reply.body.equals(bytesOf(script)));
    assert.equal(cost, COST);
  });

  test("says what it is: its type, no buffering, the caller's limits and the id of the call", async () => {
    const { reply } = await streamed(stream(answer("Volga.")));
    assert.equal(reply.header("content-type"), "text/event-stream");
    assert.equal(reply.header("cache-control"), "no-cache");
    assert.equal(reply.header("content-length"), undefined);
    assert.deepEqual(Object.keys(rateHeaders(reply)), ["ratelimit", "ratelimit-policy"]);
    const record = await gate.record(reply);
    assert.deepEqual([record.stream, record.exact, record.charged.usd], [true, true, COST]);
  });

  test("that nobody asked for is passed on as what it is, and so is a whole answer in its place", async () => {
    const script = stream(answer("Volga."));
    await gate.play(script);
    const reply = await gate.chat("ann");
    assert.equal(reply.header("content-type"), "text/event-stream");
    assert.ok(reply.body.equals(bytesOf(script)));
    assert.equal((await gate.record(reply)).charged.usd, COST);
    await gate.play("ok");
    const whole = await gate.stream("ann");
    assert.equal(whole.header("content-type"), "application/json");
    assert.equal(json(whole).usage.total_tokens, 15);
    assert.equal((await gate.record(whole)).charged.usd, COST);
  });
});
