// Nothing secret is kept: after calls of every kind, what was stored, logged and sent is searched for what must not be
// in it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OK } from "./harness/upstream.mjs";
import { CHAT, Gate, UPSTREAM_KEY, keyOf, plan, stock, subjectOf } from "./support/gate.mjs";
import { answer, stream, text } from "./support/sse.mjs";

const PROMPT = "Prompt-zebra-4471";
const ANSWER = "Answer-quokka-9023";
const ADDRESS = "203.0.113.77";
const WRONG_KEY = "wrong-key-of-nobody-771Z";
const COOKIE = "cookie-of-the-page-55";
const PRIVATE = [keyOf("ann"), keyOf("ben"), WRONG_KEY, PROMPT, ANSWER, ADDRESS, COOKIE, UPSTREAM_KEY];
const ASK = {
  messages: [{ role: "user", content: PROMPT }],
  tools: [{ type: "function", function: { name: PROMPT.replaceAll("-", "_"), parameters: { type: "object" } } }],
  user: PROMPT,
};
const CLIENT = [
  ["cf-connecting-ip", ADDRESS],
  ["x-forwarded-for", ADDRESS],
  ["x-real-ip", ADDRESS],
  ["cookie", `session=${COOKIE}`],
  ["openai-organization", COOKIE],
];
function said(content) {
  const choices = [{ index: 0, message: { role: "assistant", content } }];
  return { ...OK, body: { ...OK.body, choices } };
}

describe("after calls of every kind", () => {
  let gate;
  const replies = [];

  before(async () => {
    gate = await Gate.start({
      plans: {
        stock: plan({ calls: stock("requests", 9), budget: stock("usd", "1") }, { body_max: 20_000 }),
        few: plan({ calls: stock("requests", 1) }),
      },
      callers: { ann: "stock", ben: "few" },
      bounds: { first_byte_ms: 500, idle_ms: 500, limiter_ms: 300 },
      env: { ANALYTICS: "recorded" },
    });
    await calls();
    // The last one is no call: it is about the gateway itself.
    await Promise.all(replies.slice(0, -1).map((reply) => gate.record(reply)));
  });

  after(() => gate.stop());

  async function send(name, what, conduct) {
    const request = gate.request(name, { method: "POST", path: CHAT, ...what });
    request.headers.push(...CLIENT);
    replies.push(await gate.send(request, conduct));
  }

  const chat = (name, more = {}, conduct) => send(name, { body: { model: "alpha", ...ASK, ...more } }, conduct);

  /** Successes, streams, failures, refusals, and requests that are nothing. */
  async function calls() {
    await gate.play(said(ANSWER));
    await chat("ann");
    await chat("ben");
    await chat("ben");
    await gate.play(stream(answer(ANSWER)));
    await chat("ann", { stream: true });
    await gate.play(stream([text(ANSWER)]));
    await chat("ann", { stream: true });
    await gate.play(stream([text(ANSWER)], { behaviour: "hang" }));
    await chat("ann", { stream: true }, { leavesAfterEvent: 1 });
    for (const status of [400, 401, 500]) {
      const error = { message: `${PROMPT} cannot be answered with ${ANSWER}`, type: "x", code: null, param: null };
      const headers = { "content-type": "application/json", "set-cookie": "up=1" };
      await gate.play({ status, headers, body: { error } });
      await chat("ann");
    }
    await gate.play({ ...OK, behaviour: "hang-before-headers" });
    await chat("ann");
    await gate.play(said(ANSWER));
    await gate.worker.setFaults([{ at: "limiter.reserve", effect: "fails", times: "always" }]);
    await chat("ann");
    await gate.worker.setFaults([{ at: "limiter.settle", effect: "fails", times: 2 }]);
    await chat("ann");
    await gate.worker.setFaults([]);
    await nothings();
  }

  async function nothings() {
    await chat("ann", { messages: PROMPT });
    await chat("ann", { model: "unknown-model" });
    await chat("ann", { max_tokens: "many" });
    await chat("ann", { tools: [PROMPT.repeat(2_000)] });
    await send("ann", { body: Buffer.from(`{"messages": "${PROMPT}`) });
    await send("ann", { body: Buffer.from(PROMPT), headers: [["content-encoding", "gzip"]] });
    await send(null, { body: ASK, headers: [["authorization", `Bearer ${WRONG_KEY}`]] });
    await send("ann", { body: ASK, headers: [["x-api-key", keyOf("ben")]] });
    await send("ann", { body: ASK, path: `${CHAT}?api_key=${keyOf("ann")}&q=${PROMPT}` });
    await send("ann", { body: ASK, path: "/v1/files" });
    await send("ann", { body: ASK, path: "/v1/tokens/count" });
    await send("ann", { method: "GET", path: "/v1/usage" });
    await send("ann", { method: "GET", path: "/v1/models" });
    await send(null, { method: "GET", path: "/healthz" });
  }

  const found = (text, secrets) => secrets.filter((secret) => String(text).includes(secret));
  const all = (...secrets) => PRIVATE.filter((secret) => !secrets.includes(secret));

  test("every kind of answer was among them", () => {
    const statuses = new Set(replies.map(({ status }) => status));
    const wanted = [200, 400, 401, 404, 413, 415, 429, 502, 503, 504];
    assert.deepEqual(wanted.filter((status) => !statuses.has(status)), []);
  });

  test("nothing that is stored contains a key, a prompt, an answer or an address", async () => {
    for (const name of ["ann", "ben"]) {
      const { values } = await gate.worker.object(subjectOf(name)).stored();
      assert.equal(Object.keys(values).length, 1);
      assert.deepEqual(found(JSON.stringify(values), PRIVATE), []);
    }
    assert.deepEqual(found(gate.worker.stored().toString("latin1"), PRIVATE), []);
  });

  test("nothing that is logged or measured contains one", async () => {
    assert.ok(gate.worker.calls.length >= replies.length - 1);
    for (const line of gate.worker.lines) assert.deepEqual(found(line, PRIVATE), [], line);
    const points = await gate.worker.points();
    assert.ok(points.length >= gate.worker.calls.length);
    assert.deepEqual(found(JSON.stringify(points), PRIVATE), []);
  });

  test("nothing that was said to a caller's object contains one", async () => {
    await gate.worker.setFaults([]);
    await chat("ann");
    await gate.record(replies.at(-1));
    const commands = await gate.worker.commands();
    assert.ok(commands.length > 0);
    assert.deepEqual(found(JSON.stringify(commands), PRIVATE), []);
  });

  test("no upstream heard of a caller's key, address or cookie, and each call carried our own key once", () => {
    assert.ok(gate.upstream.calls.length >= 8);
    for (const { rawHeaders, url, body, headers } of gate.upstream.calls) {
      const sent = `${url} ${rawHeaders} ${body}`;
      assert.deepEqual(found(sent, all(PROMPT, UPSTREAM_KEY)), []);
      assert.equal(url, "/v1/chat/completions");
      assert.equal(headers.authorization, `Bearer ${UPSTREAM_KEY}`);
      assert.equal(sent.split(UPSTREAM_KEY).length, 2);
    }
  });

  test("no answer contains a key or an address, and only the upstream's own words repeat a prompt", () => {
    for (const reply of replies) {
      const head = JSON.stringify(reply.headers);
      assert.deepEqual(found(head, PRIVATE), [], head);
      assert.equal(reply.header("set-cookie"), undefined);
      const fromUpstream = reply.body.includes("cannot be answered");
      const secrets = all(ANSWER, fromUpstream ? PROMPT : "");
      assert.deepEqual(found(reply.body, secrets), [], reply.body.toString());
    }
  });
});
