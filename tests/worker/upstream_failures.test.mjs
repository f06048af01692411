// Upstreams that fail: what the client is told, what it costs, and that nothing of the upstream's own affairs shows.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK, startUpstream } from "./harness/upstream.mjs";
import { Gate, NANO_USD, UPSTREAM_KEY, errorOf, plan, rateHeaders, stock } from "./support/gate.mjs";
import { EVENT_STREAM, ROLE, failure, stream, text } from "./support/sse.mjs";

const PATIENT = 60_000;
const BOUND = 300;
/** A bound may pass twice; the rest is for a machine that is busy. */
const AT_MOST = 2 * BOUND + 5_000;
const JSON_TYPE = { "content-type": "application/json" };
const HTML = { status: 200, headers: { "content-type": "text/html" }, body: "<html>Bad gateway</html>" };

/** What an upstream says of itself, in places where it does. */
const SECRET = { organization: "org-Zz99secret", fragment: "sk-proj-4f9aSecret", cookie: "upstream-session-77" };
const OWN_HEADERS = {
  ...JSON_TYPE,
  "openai-organization": SECRET.organization,
  "set-cookie": `session=${SECRET.cookie}`,
  "x-ratelimit-remaining-requests": "987654",
  server: "upstream-server-8",
};
const WORDS = `Not so, says ${SECRET.organization} of key ${SECRET.fragment}.`;
const ERROR = { error: { message: WORDS, type: "some_error", param: "messages", code: 1234, user_id: "user-abc" } };
const fails = (status, headers = {}, body = ERROR) => ({ status, headers: { ...OWN_HEADERS, ...headers }, body });
/** Bytes of an answer, piece by piece, whatever they are. */
const pieces = (list, behaviour, headers = JSON_TYPE) => ({ status: 200, headers, sse: list, behaviour });

const server = (code, status = 502) => ({ status, type: "server_error", code });
const passed = (status) => ({ status, type: "some_error", code: "1234", param: "messages", message: /^Not so, says / });

/** Each: what the upstream does, and what the client is told, plain and streamed alike. */
const FAILS = {
  "refuses the connection": [{ ...OK, behaviour: "connection-refused" }, server("upstream_unreachable")],
  "resets the connection in the middle of its headers": [
    { ...OK, behaviour: "reset-in-headers" },
    server("upstream_unreachable"),
  ],
  "resets the connection after its headers": [pieces([], "reset"), server("upstream_invalid")],
  "resets the connection in the middle of an answer": [pieces(['{"id":"c-31"'], "reset"), server("upstream_invalid")],
  "sends less than it said it would": [
    pieces(['{"id":"c-31"'], "reset", { ...JSON_TYPE, "content-length": "500" }),
    server("upstream_invalid"),
  ],
  "answers 400": [fails(400), passed(400)],
  "answers 404": [fails(404), passed(404)],
  "answers 409": [fails(409), passed(409)],
  "answers 422": [fails(422), passed(422)],
  "answers 404 in HTML": [{ ...HTML, status: 404 }, { status: 404, type: "invalid_request_error", code: null }],
  "does not accept our key (401)": [fails(401), server("upstream_auth")],
  "does not accept our key (403)": [fails(403), server("upstream_auth")],
  "wants to be paid (402)": [fails(402), server("upstream_failed")],
  "is at its limit, and says until when": [
    fails(429, { "retry-after": "7" }),
    { ...passed(429), waits: ["7", "7000", undefined], limitedBy: "upstream" },
  ],
  "is at its limit for long": [
    fails(429, { "retry-after": "3600" }),
    { ...passed(429), waits: ["3600", "3600000", "false"], limitedBy: "upstream" },
  ],
  "is at its limit, and says nothing of when": [
    fails(429),
    { ...passed(429), waits: [undefined, undefined, undefined], limitedBy: "upstream" },
  ],
  "answers 500": [fails(500), server("upstream_failed")],
  "answers 503": [fails(503, { "retry-after": "1" }), server("upstream_failed")],
  "redirects elsewhere": [
    fails(302, { location: `https://elsewhere.invalid/${SECRET.cookie}` }),
    server("upstream_invalid"),
  ],
  "redirects a POST": [fails(307, { location: "/v1/chat/completions" }), server("upstream_invalid")],
  "answers HTML": [HTML, server("upstream_invalid")],
  "answers nothing": [{ status: 200, headers: JSON_TYPE, body: "" }, server("upstream_invalid")],
  "answers 204": [{ status: 204, headers: {}, body: "" }, server("upstream_invalid")],
  "answers JSON that is broken": [{ status: 200, headers: JSON_TYPE, body: '{"id":' }, server("upstream_invalid")],
  "answers JSON that is none of the kind": [
    { status: 200, headers: JSON_TYPE, body: "[1,2]" },
    server("upstream_invalid"),
  ],
  "answers 200 with an error": [fails(200), server("upstream_failed")],
  "answers a stream that begins with an error": [
    { ...EVENT_STREAM, sse: [failure(WORDS)] },
    server("upstream_failed"),
  ],
  "breaks off a stream in its first event": [stream([ROLE.slice(0, 40)], { behaviour: "reset" }), server("upstream_invalid")],
  "ends a stream in its first event": [stream([ROLE.slice(0, 40)]), server("upstream_invalid")],
  "ends a stream before its first event": [stream([]), server("upstream_invalid")],
  "answers in an encoding that nobody undoes": [
    { ...OK, headers: { ...JSON_TYPE, "content-encoding": "zstd" } },
    server("upstream_invalid"),
  ],
};
/** The same of upstreams that do not even begin. */
const NEVER_BEGINS = {
  "hangs before its headers": [{ ...OK, behaviour: "hang-before-headers" }, server("upstream_timeout", 504)],
  "hangs after its headers": [pieces([], "hang"), server("upstream_timeout", 504)],
  "hangs after the headers of a stream": [stream([], { behaviour: "hang" }), server("upstream_timeout", 504)],
  "hangs in a stream's first event": [stream([ROLE.slice(0, 40)], { behaviour: "hang" }), server("upstream_timeout", 504)],
};
/** The same of upstreams that are never silent, and never come to an end. */
const TRICKLES = {
  "sends its headers byte by byte": [{ ...OK, behaviour: "trickle-headers" }, server("upstream_timeout", 504)],
  "sends an answer byte by byte": [pieces(['{"id":"'], "trickle"), server("upstream_timeout", 504)],
  "sends a stream's first event byte by byte": [
    stream([ROLE.slice(0, 40)], { behaviour: "trickle" }),
    server("upstream_timeout", 504),
  ],
  "answers 400 and sends its reasons byte by byte": [
    { ...pieces(['{"error":"'], "trickle"), status: 400 },
    { status: 400, type: "invalid_request_error", code: null },
  ],
  "is at its limit and says why byte by byte": [
    { ...pieces(['{"error":"'], "trickle"), status: 429 },
    { status: 429, type: "invalid_request_error", code: null, limitedBy: "upstream" },
  ],
};
/** The same of upstreams that begin, and then are silent. */
const FALLS_SILENT = {
  "hangs in the middle of an answer": [pieces(['{"id":"c-31","cho'], "hang"), server("upstream_timeout", 504)],
  "answers 400 and hangs in the middle of its reasons": [
    { ...pieces(['{"error":'], "hang"), status: 400 },
    { status: 400, type: "invalid_request_error", code: null },
  ],
};

/** The Worker for the tests of one suite. */
function gateOf(bounds, clock) {
  const own = { stands: clock !== null };
  before(async () => {
    own.sealed = await startUpstream({ sealed: true });
    const once = { secret: "LLM_API_KEY", retry: { attempts: 1 } };
    const alpha = { input: "1", output: "2", max_output: 100, encoding: "o200k" };
    own.gate = await Gate.start({
      clock,
      plans: { stock: plan({ budget: stock("usd", "1"), calls: stock("requests", 1_000) }) },
      callers: { ann: "stock" },
      models: { lost: { ...alpha, upstream: "nowhere" }, sealed: { ...alpha, upstream: "sealed" } },
      upstreams: {
        nowhere: { base_url: "https://upstream.invalid/v1", ...once },
        sealed: { base_url: `${own.sealed.origin}/v1`, ...once },
      },
      bounds: { hold_ms: 600_000, ...bounds },
    });
  });
  after(() => Promise.all([own.gate.stop(), own.sealed.close()]));
  return own;
}

async function limitsOf(gate) {
  const { limits, open_holds: open } = await gate.usage("ann");
  return { open, left: limits.map(({ left }) => left) };
}

/** Calls; tells the reply, once it is certain that it cost nothing and holds nothing. */
async function freeOfCharge(gate, more) {
  const before = await limitsOf(gate);
  const reply = await gate.chat("ann", more);
  await gate.settled("ann");
  assert.deepEqual(await limitsOf(gate), before);
  const record = await gate.record(reply);
  assert.deepEqual([record.status, record.charged], [reply.status, undefined]);
  assert.ok(reply.ms < AT_MOST, `it took ${reply.ms} ms`);
  return reply;
}

function saysNothingOfTheUpstream(gate, reply) {
  const shown = `${JSON.stringify(reply.headers)} ${reply.body}`;
  const own = [...Object.values(SECRET), UPSTREAM_KEY, gate.upstream.origin, "987654", "upstream-server-8"];
  assert.deepEqual(own.filter((secret) => shown.includes(secret)), [], shown);
}

function isTold(reply, { status, type, code, param = null, message, waits, limitedBy }) {
  const error = errorOf(reply);
  assert.deepEqual([reply.status, error.type, error.code, error.param], [status, type, code, param]);
  if (message) assert.match(error.message, message);
  assert.equal(reply.header("content-type"), "application/json");
  assert.match(reply.header("x-request-id"), /^[0-9a-f-]{36}$/);
  assert.equal(reply.header("x-tollgate-limited-by"), limitedBy);
  const told = ["retry-after", "retry-after-ms", "x-should-retry"].map((name) => reply.header(name));
  assert.deepEqual(told, waits ?? [undefined, undefined, undefined]);
  assert.equal(rateHeaders(reply)["x-ratelimit-limit-requests"], "1000");
}

/** A test for each row, plain and streamed. */
function rows(own, table) {
  for (const [name, [script, told]] of Object.entries(table)) {
    for (const streamed of [false, true]) {
      test(`${name}: ${told.status} ${told.code}, free of charge (${streamed ? "streamed" : "plain"})`, async () => {
        const { gate } = own;
        // What an upstream has said of its own limit is remembered for a minute at most.
        if (own.stands) await gate.worker.advance(60_000);
        await gate.play(script);
        const seen = gate.upstream.calls.length;
        const reply = await freeOfCharge(gate, streamed ? { stream: true } : {});
        isTold(reply, told);
        saysNothingOfTheUpstream(gate, reply);
        assert.equal(reply.header("location"), undefined);
        assert.equal(gate.upstream.calls.length - seen, script.behaviour === "connection-refused" ? 0 : 1);
      });
    }
  }
}

describe("an upstream that", () => {
  const own = gateOf({ first_byte_ms: PATIENT, idle_ms: PATIENT });
  rows(own, FAILS);

  for (const streamed of [false, true]) {
    test(`has no address: 502 upstream_unreachable (${streamed ? "streamed" : "plain"})`, async () => {
      const reply = await freeOfCharge(own.gate, { model: "lost", stream: streamed });
      isTold(reply, server("upstream_unreachable"));
      assert.doesNotMatch(reply.body.toString(), /upstream\.invalid/);
    });

    test(`has a certificate that nobody trusts: 502 upstream_unreachable (${streamed ? "streamed" : "plain"})`, async () => {
      const reply = await freeOfCharge(own.gate, { model: "sealed", stream: streamed });
      isTold(reply, server("upstream_unreachable"));
      assert.equal(own.sealed.calls.length, 0);
    });
  }

  test("repeats our key in the reasons that it gives: the key does not travel back", async () => {
    for (const message of [`Incorrect key: ${UPSTREAM_KEY}.`, `Header "Bearer ${UPSTREAM_KEY}" is not allowed`]) {
      await own.gate.play(fails(400, {}, { error: { message, type: "invalid_request_error", code: UPSTREAM_KEY } }));
      saysNothingOfTheUpstream(own.gate, await freeOfCharge(own.gate, {}));
    }
  });
});

describe("an upstream that never begins: it", () => {
  rows(gateOf({ first_byte_ms: BOUND, idle_ms: PATIENT }), NEVER_BEGINS);
});

describe("an upstream that falls silent: it", () => {
  rows(gateOf({ first_byte_ms: PATIENT, idle_ms: BOUND }), FALLS_SILENT);
});

describe("an upstream that trickles: it", () => {
  // An answer that is read whole has until shortly before its hold ends; and time has to pass.
  rows(gateOf({ first_byte_ms: BOUND, idle_ms: PATIENT, hold_ms: 5_000 + 2 * BOUND }, null), TRICKLES);
});

/** Streams that have begun: what is told at their end, and how many tokens were seen. */
const BREAKS = {
  "breaks off after an event": [{ behaviour: "reset" }, [ROLE, text("Volga, Niger")], "upstream_invalid", 4],
  "breaks off in an event": [{ behaviour: "reset" }, [ROLE, text("Volga, Niger"), text("Loire").slice(0, 60)], "upstream_invalid", 4],
  "ends without its end": [{}, [ROLE, text("Volga, Niger")], "upstream_invalid", 4],
  "hangs between two events": [{ behaviour: "hang" }, [ROLE, text("Volga, Niger")], "upstream_timeout", 4],
  "breaks off before any text": [{ behaviour: "reset" }, [ROLE], "upstream_invalid", 0],
};

describe("a stream that has begun:", () => {
  const own = gateOf({ first_byte_ms: PATIENT, idle_ms: BOUND });
  for (const [name, [more, events, code, seen]] of Object.entries(BREAKS)) {
    test(`it ${name}: an event ${code}, and ${seen} tokens are charged`, async () => {
      const { gate } = own;
      const headers = { ...EVENT_STREAM.headers, "set-cookie": SECRET.cookie };
      await gate.play(stream(events, { ...more, headers }));
      const [before] = (await limitsOf(gate)).left;
      const reply = await gate.stream("ann");
      await gate.settled("ann");
      const { held, charged } = await gate.record(reply);
      const cost = seen > 0 ? held.input * NANO_USD.input + seen * NANO_USD.output : 0;
      assert.deepEqual([before - (await limitsOf(gate)).left[0], charged?.usd ?? 0], [cost, cost]);
      const last = reply.body.toString().trimEnd().split("\n\n").at(-1);
      assert.equal(JSON.parse(last.replace(/^data: /, "")).error.code, code);
      assert.ok(reply.ms < AT_MOST, `it took ${reply.ms} ms`);
      saysNothingOfTheUpstream(gate, reply);
    });
  }
});
