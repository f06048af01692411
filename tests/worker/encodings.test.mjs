// Answers that are compressed though we asked for none of it: a client gets them decoded once, or not at all, and they are
// charged for what is in them. And headers as they really travel.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { OK } from "./harness/upstream.mjs";
import { CHAT, Gate, NANO_USD, errorOf, plan, stock } from "./support/gate.mjs";
import { answer } from "./support/sse.mjs";

const PLAIN = Buffer.from(JSON.stringify(OK.body));
const EVENTS = Buffer.from(answer("Volga", ", Niger").join(""));
const DECODED = { gzip: gzipSync, br: brotliCompressSync };
const NOT_DECODED = {
  deflate: deflateSync,
  GZIP: gzipSync,
  "gzip, br": (bytes) => brotliCompressSync(gzipSync(bytes)),
  zstd: (bytes) => bytes,
};
/** What the answers say that they used: 10 tokens in and 5 out. */
const COST = 10 * NANO_USD.input + 5 * NANO_USD.output;

const gate = {};
before(async () => {
  gate.own = await Gate.start({ plans: { stock: plan({ budget: stock("usd", "1") }) }, callers: { ann: "stock" } });
});
after(() => gate.own.stop());

const typed = (type, encoding) => ({ "content-type": type, ...(encoding ? { "content-encoding": encoding } : {}) });
const whole = (bytes, encoding, more = {}) => {
  return { status: 200, headers: typed("application/json", encoding), body_base64: bytes.toString("base64"), ...more };
};
/** The bytes in small pieces, as a network cuts them. */
function pieces(bytes, encoding, more = {}) {
  const cut = [];
  for (let at = 0; at < bytes.length; at += 7) cut.push(bytes.subarray(at, at + 7).toString("base64"));
  return { status: 200, headers: typed("text/event-stream", encoding), sse_base64: cut, ...more };
}

/** Calls; tells the reply and what it was charged. */
async function call(script, more = {}) {
  await gate.own.play(script);
  const before = await gate.own.left("ann", "budget");
  const reply = await gate.own.chat("ann", more);
  await gate.own.settled("ann");
  return { reply, charged: before - (await gate.own.left("ann", "budget")) };
}
const STREAMED = { stream: true, stream_options: { include_usage: true } };

describe("an answer that is compressed", () => {
  for (const [encoding, compress] of Object.entries(DECODED)) {
    test(`by ${encoding} reaches the client decoded`, async () => {
      const { reply, charged } = await call(whole(compress(PLAIN), encoding));
      assert.deepEqual([reply.status, reply.body.toString()], [200, PLAIN.toString()]);
      assert.equal(reply.header("content-encoding"), undefined);
      assert.equal(charged, COST);
    });

    test(`by ${encoding} reaches the client decoded, event by event`, async () => {
      const { reply, charged } = await call(pieces(compress(EVENTS), encoding), STREAMED);
      assert.deepEqual([reply.status, reply.body.toString()], [200, EVENTS.toString()]);
      assert.equal(reply.header("content-encoding"), undefined);
      assert.equal(charged, COST);
    });

    test(`by ${encoding} and broken is no answer`, async () => {
      for (const bytes of [compress(PLAIN).subarray(0, 40), Buffer.concat([Buffer.from("no"), compress(PLAIN)])]) {
        const { reply, charged } = await call(whole(bytes, encoding));
        assert.deepEqual([reply.status, errorOf(reply).code, charged], [502, "upstream_invalid", 0]);
      }
    });

    test(`by ${encoding} and cut off in the middle of a stream ends with an error`, async () => {
      const bytes = compress(EVENTS);
      const { reply } = await call(pieces(bytes.subarray(0, bytes.length - 12), encoding, { behaviour: "reset" }), STREAMED);
      const body = reply.body.toString();
      assert.match(body, /"code":"upstream_invalid"/);
      assert.doesNotMatch(body, /\[DONE\]/);
    });

    test(`by ${encoding} and refuses: its words arrive decoded`, async () => {
      const words = Buffer.from(JSON.stringify({ error: { message: "Not so.", type: "some_error", code: "theirs" } }));
      const { reply, charged } = await call(whole(compress(words), encoding, { status: 400 }));
      assert.deepEqual([reply.status, errorOf(reply).message, charged], [400, "Not so.", 0]);
    });
  }

  for (const [encoding, compress] of Object.entries(NOT_DECODED)) {
    test(`by ${encoding}, which nobody undoes, is no answer, whole or streamed`, async () => {
      for (const [script, more] of [
        [whole(compress(PLAIN), encoding), {}],
        [pieces(compress(EVENTS), encoding), STREAMED],
      ]) {
        const { reply, charged } = await call(script, more);
        assert.deepEqual([reply.status, errorOf(reply).code, charged], [502, "upstream_invalid", 0]);
      }
    });
  }

  test("by nothing, and says so, is passed on", async () => {
    const { reply } = await call(whole(PLAIN, "identity"));
    assert.deepEqual([reply.status, reply.body.toString()], [200, PLAIN.toString()]);
  });
});

describe("headers on their way out", () => {
  const sendWith = async (headers) => {
    await gate.own.play("ok");
    const body = { model: "alpha", messages: [{ role: "user", content: "Hi" }] };
    const reply = await gate.own.send(gate.own.request("ann", { method: "POST", path: CHAT, headers, body }));
    assert.equal(reply.status, 200, reply.body.toString());
    return gate.own.upstream.calls.at(-1);
  };

  test("no compression is asked for, whatever the client would take", async () => {
    const { headers } = await sendWith([["accept-encoding", "gzip, br, zstd"]]);
    assert.equal(headers["accept-encoding"], "identity");
  });

  test("one that is there twice arrives once, with both values", async () => {
    const { rawHeaders } = await sendWith([["openai-beta", "first=v1"], ["OpenAI-Beta", "second=v2"]]);
    const values = rawHeaders.filter((_, place) => rawHeaders[place - 1]?.toLowerCase() === "openai-beta" && place % 2 === 1);
    assert.deepEqual(values, ["first=v1, second=v2"]);
  });

  test("those of one connection, and cookies, do not arrive", async () => {
    const { headers } = await sendWith([
      ["expect", "100-continue"], ["te", "trailers"], ["keep-alive", "timeout=5"], ["proxy-authorization", "Basic eDp5"],
      ["cookie", "a=b"], ["forwarded", "for=1.2.3.4"], ["x-forwarded-for", "1.2.3.4"],
    ]);
    const never = ["expect", "te", "keep-alive", "proxy-authorization", "cookie", "forwarded", "x-forwarded-for"];
    assert.deepEqual(never.filter((name) => headers[name] !== undefined), []);
  });
});
