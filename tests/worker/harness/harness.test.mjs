// That the harness does what tests build on.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CALLERS, CLOCK, envOf } from "../cases/policy.mjs";
import { open } from "./client.mjs";
import { startUpstream } from "./upstream.mjs";
import { LEDGER, start } from "./worker.mjs";

const { key, subject } = CALLERS["u-alpha"];
const headers = [["authorization", `Bearer ${key}`], ["content-type", "application/json"]];
const body = Buffer.from(JSON.stringify({ model: "alpha-small", messages: [], max_tokens: 10 }));
const chat = { method: "POST", path: "/v1/chat/completions", headers, body };

describe("the test harness", () => {
  let upstream;
  let worker;

  before(async () => {
    upstream = await startUpstream();
    const env = envOf({}, { planName: "standard", upstream: upstream.origin, values: {} });
    env.POLICY.bounds.limiter_ms = 300;
    worker = await start({ env: { ...env, ANALYTICS: "recorded" }, bindings: { LEDGER }, clock: CLOCK });
  });

  after(async () => {
    await worker.stop();
    await upstream.close();
  });

  const send = async (request = chat, conduct = {}) => {
    const connection = await open(worker.url);
    const reply = await connection.send(request, conduct);
    connection.close();
    return reply;
  };
  const usage = async () => {
    const reply = await worker.fetch("/v1/usage", { headers: { authorization: `Bearer ${key}` } });
    return reply.json();
  };
  const settledCalls = async (count) => {
    while (worker.calls.filter(({ route }) => route === chat.path).length < count) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return worker.calls.filter(({ route }) => route === chat.path);
  };

  test("the Worker runs on the clock that the test sets", async () => {
    assert.equal((await usage()).at_ms, CLOCK);
    await worker.advance(1_500);
    assert.equal((await usage()).at_ms, CLOCK + 1_500);
    await worker.setClock(null);
    assert.ok(Math.abs((await usage()).at_ms - Date.now()) < 60_000);
    await worker.setClock(CLOCK);
  });

  test("the tests' door is not on the Worker's own address", async () => {
    const reply = await worker.fetch("/", { method: "POST", body: JSON.stringify({ act: "clock", at: 0 }) });
    assert.equal(reply.status, 404);
    assert.equal((await usage()).at_ms, CLOCK);
  });

  test("calls are recorded in the log, at the upstream, as commands and as data points", async () => {
    const seen = upstream.calls.length;
    assert.equal((await send()).status, 200);
    const [record] = await settledCalls(1);
    assert.deepEqual([record.subject, record.charged.usd], [subject, 20_000]);
    assert.equal(upstream.calls.length, seen + 1);
    assert.ok(upstream.calls.at(-1).body.equals(body));
    assert.deepEqual((await worker.commands()).map(({ verb }) => verb).slice(-2), ["reserve", "settle"]);
    assert.equal((await worker.points()).at(-1).indexes[0], subject);
  });

  test("what is stored outlives an eviction and a kill", async () => {
    const { left } = (await usage()).limits[0];
    assert.ok(left < 10_000_000);
    await worker.object(subject).evict();
    assert.equal((await usage()).limits[0].left, left);
    await worker.restart();
    assert.equal((await usage()).limits[0].left, left);
    const { values, alarm } = await worker.object(subject).stored();
    assert.equal(Object.keys(values).length, 1);
    assert.ok(alarm > CLOCK);
  });

  const effects = [
    ["fails", 1, 200],
    ["fails", "always", 503],
    ["reply-lost", 1, 200],
    ["twice", 1, 200],
    ["hangs", 1, 200],
  ];
  for (const [effect, times, status] of effects) {
    test(`a reservation that ${effect} (${times}) ends in ${status}, and in no open hold`, async () => {
      await worker.setFaults([{ at: "limiter.reserve", effect, times }]);
      assert.equal((await send()).status, status);
      assert.ok((await worker.commands()).some((command) => command.effect === effect));
      await worker.setFaults([]);
      while ((await usage()).open_holds > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    });
  }

  test("the alarm runs when the test says so, and cleans up once the account is full and has rested", async () => {
    await worker.advance(86_400_000);
    await worker.object(subject).alarm();
    assert.deepEqual(await worker.object(subject).stored(), { values: {}, alarm: null });
    assert.equal((await usage()).limits[0].left, 10_000_000);
  });

  test("a record that was damaged is refused", async () => {
    assert.equal((await send()).status, 200);
    assert.equal(await worker.object(subject).damage(), 1);
    assert.equal((await send()).status, 503);
  });

  test("a caller's place decides the hint for its object", async () => {
    await send({ ...chat, headers: [...headers, ["mf-cf-blob", '{"continent":"OC","longitude":"151.2"}']] });
    assert.deepEqual((await worker.commands()).at(-1).options, { locationHint: "oc" });
  });

  test("a missing binding is refused", async () => {
    const env = envOf({}, { planName: "standard", upstream: upstream.origin, values: {} });
    const bare = await start({ env, bindings: { LEDGER, LIMITER: null }, clock: CLOCK });
    const connection = await open(bare.url);
    assert.equal((await connection.send(chat)).status, 503);
    connection.close();
    await bare.stop();
  });

  test("the upstream hears of a client that leaves", async () => {
    const event = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n';
    const streaming = { status: 200, headers: { "content-type": "text/event-stream" } };
    await upstream.answerWith({ ...streaming, sse: [event], behaviour: "hang" });
    const beta = [["authorization", `Bearer ${CALLERS["u-beta"].key}`]];
    const streamed = Buffer.from(body.toString().replace("{", '{"stream":true,'));
    const reply = await send({ ...chat, headers: beta, body: streamed }, { leavesAfterEvent: 1 });
    assert.equal(reply.status, 200);
    const closed = await upstream.calls.at(-1).cancelled;
    assert.ok(closed !== null && closed >= reply.leftAt);
  });
});
