// Calls in the background in the real runtime: begun by one request, settled by another, whatever stops in between.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DAY, Gate, NANO_USD, NOON, errorOf, eventually, json, plan, stock, subjectOf } from "./support/gate.mjs";
import { posted, rowOf, withDay } from "./support/day.mjs";

const HOUR = 3_600_000;
const GRACE = 600_000;
const BUDGET = 1_000_000_000;
const COST = 40 * NANO_USD.input + 30 * NANO_USD.output;
const PATH = "/v1/responses";
const ASK = { model: "alpha", input: "Name three rivers.", max_output_tokens: 100, background: true };
const limits = { budget: stock("usd", "1"), calls: stock("requests", 10), open: { unit: "concurrency", amount: 2 } };
const plans = { stock: plan(limits, { background: true }), awaited: plan(limits) };
const callers = {
  ...Object.fromEntries(["ann", "ben", "cid", "dot", "eve", "fay", "hal", "ida"].map((name) => [name, "stock"])),
  gus: "awaited",
};

/** A provider's word on a call. */
function standing(id, status, usage = null) {
  const body = { id, object: "response", status, output: [], usage, error: null };
  return { status: 200, headers: { "content-type": "application/json" }, body };
}

const ended = (id, status = "completed") =>
  standing(id, status, { input_tokens: 40, output_tokens: 30, total_tokens: 70 });

const begin = (gate, name) => gate.send(gate.request(name, { method: "POST", path: PATH, body: ASK }));
const fetched = (gate, name, id) => gate.send(gate.request(name, { path: `${PATH}/${id}` }));
const cancelled = (gate, name, id) => gate.send(gate.request(name, { method: "POST", path: `${PATH}/${id}/cancel` }));

/** Begins a call that is queued under the id. */
async function queued(gate, name, id) {
  await gate.play(standing(id, "queued"));
  const reply = await begin(gate, name);
  assert.deepEqual([reply.status, json(reply).status], [200, "queued"], reply.body.toString());
  assert.equal(reply.header("x-tollgate-background"), undefined);
}

async function state(gate, name) {
  const { limits, open_holds: open } = await gate.usage(name);
  const left = Object.fromEntries(limits.map((limit) => [limit.name, limit.left]));
  return { spent: BUDGET - left.budget, calls: 10 - left.calls, slots: left.open, open };
}

describe("a call in the background", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ plans, callers });
  });

  after(() => gate.stop());

  test("is kept, fetched, settled once, and costs one request however often it is asked for", async () => {
    await queued(gate, "ann", "resp_ann");
    const held = await state(gate, "ann");
    assert.deepEqual([held.calls, held.slots, held.open], [1, 1, 1]);
    assert.ok(held.spent > COST);
    await gate.play(standing("resp_ann", "in_progress"));
    await gate.worker.advance(HOUR);
    for (let polls = 0; polls < 5; polls += 1) {
      assert.equal(json(await fetched(gate, "ann", "resp_ann")).status, "in_progress");
    }
    assert.deepEqual(await state(gate, "ann"), held);
    await gate.play(ended("resp_ann"));
    for (let polls = 0; polls < 2; polls += 1) {
      const reply = await fetched(gate, "ann", "resp_ann");
      assert.deepEqual(json(reply), ended("resp_ann").body);
      // It is settled before it is answered.
      assert.deepEqual(await state(gate, "ann"), { spent: COST, calls: 1, slots: 2, open: 0 });
    }
    const { method, path, body, headers } = gate.upstream.calls.at(-1);
    assert.deepEqual([method, path, body.length], ["GET", "/v1/responses/resp_ann", 0]);
    assert.equal(headers["x-api-key"], undefined);
    const lines = gate.worker.calls.filter(({ kept_as: id }) => id === "resp_ann");
    assert.deepEqual(lines.map(({ verdict }) => verdict), ["kept", ...Array(5).fill("ok"), "settled", "ok"]);
    assert.equal(lines.reduce((sum, { charged }) => sum + (charged?.usd ?? 0), 0), COST);
    await gate.worker.setClock(NOON);
  });

  test("outlives a restart of the Worker and its object", async () => {
    await queued(gate, "ben", "resp_ben");
    const held = await state(gate, "ben");
    await gate.worker.restart();
    assert.deepEqual(await state(gate, "ben"), held);
    await gate.play(ended("resp_ben"));
    assert.equal((await fetched(gate, "ben", "resp_ben")).status, 200);
    await gate.worker.restart();
    assert.equal((await fetched(gate, "ben", "resp_ben")).status, 200);
    assert.deepEqual(await state(gate, "ben"), { spent: COST, calls: 1, slots: 2, open: 0 });
  });

  test("is settled once if two requests fetch its end at the same time", async () => {
    await queued(gate, "hal", "resp_hal");
    let answer;
    const asked = new Promise((resolve) => (answer = resolve));
    await gate.play({ ...ended("resp_hal"), wait_for_step: "answer" }, { step: () => asked });
    const seen = gate.upstream.calls.length;
    const replying = [1, 2].map(() => fetched(gate, "hal", "resp_hal"));
    while (gate.upstream.calls.length < seen + 2) await gate.upstream.nextCall();
    answer();
    for (const reply of await Promise.all(replying)) assert.equal(json(reply).status, "completed");
    assert.deepEqual(await state(gate, "hal"), { spent: COST, calls: 1, slots: 2, open: 0 });
    const lines = gate.worker.calls.filter(({ kept_as: id }) => id === "resp_hal");
    assert.deepEqual(lines.map(({ verdict }) => verdict).sort(), ["kept", "ok", "settled"]);
    assert.deepEqual(lines.flatMap(({ charged }) => (charged ? [charged.usd] : [])), [COST]);
  });

  test("is kept if its client leaves before it hears of it", async () => {
    let answer;
    const asked = new Promise((resolve) => (answer = resolve));
    await gate.play({ ...standing("resp_ida", "queued"), wait_for_step: "answer" }, { step: () => asked });
    const arrived = gate.upstream.nextCall();
    let connection;
    const request = gate.request("ida", { method: "POST", path: PATH, body: ASK });
    const replying = gate.send(request, { onOpen: (own) => (connection = own) });
    await arrived;
    connection.close();
    await replying;
    answer();
    await gate.play(ended("resp_ida"));
    const kept = () => gate.worker.calls.some(({ kept_as: id, verdict }) => id === "resp_ida" && verdict === "kept");
    await eventually("the call is kept", kept);
    assert.equal((await fetched(gate, "ida", "resp_ida")).status, 200);
    assert.deepEqual(await state(gate, "ida"), { spent: COST, calls: 1, slots: 2, open: 0 });
  });

  test("is another caller's to nobody", async () => {
    await queued(gate, "cid", "resp_cid");
    const seen = gate.upstream.calls.length;
    for (const ask of [fetched, cancelled]) {
      const reply = await ask(gate, "dot", "resp_cid");
      assert.equal(reply.status, 404);
      const { type, param, code } = errorOf(reply);
      assert.deepEqual([type, param, code], ["invalid_request_error", "id", "response_not_found"]);
      assert.equal((await ask(gate, null, "resp_cid")).status, 401);
    }
    assert.equal(gate.upstream.calls.length, seen);
  });

  test("that nobody fetches is charged what it held, at its deadline", async () => {
    await queued(gate, "dot", "resp_dot");
    const held = await state(gate, "dot");
    await gate.worker.advance(DAY - 1);
    assert.equal((await state(gate, "dot")).open, 1);
    await gate.worker.advance(1);
    assert.equal((await state(gate, "dot")).open, 0);
    await gate.worker.advance(GRACE);
    await gate.play(ended("resp_dot"));
    assert.equal((await fetched(gate, "dot", "resp_dot")).status, 200);
    const { spent, open } = await state(gate, "dot");
    assert.ok(spent >= held.spent - 10 && open === 0, `${spent} of ${held.spent}`);
    await gate.worker.advance(HOUR);
    assert.equal((await fetched(gate, "dot", "resp_dot")).status, 404);
    await gate.worker.setClock(NOON);
  });

  test("is cancelled by a POST without a body", async () => {
    await queued(gate, "eve", "resp_eve");
    await gate.play(ended("resp_eve", "cancelled"));
    const reply = await cancelled(gate, "eve", "resp_eve");
    assert.deepEqual([reply.status, json(reply).status], [200, "cancelled"]);
    const { method, path, body } = gate.upstream.calls.at(-1);
    assert.deepEqual([method, path, body.length], ["POST", "/v1/responses/resp_eve/cancel", 0]);
    assert.deepEqual(await state(gate, "eve"), { spent: COST, calls: 1, slots: 2, open: 0 });
  });

  test("has its slot until it ends", async () => {
    await queued(gate, "fay", "resp_fay_1");
    await queued(gate, "fay", "resp_fay_2");
    const refused = await begin(gate, "fay");
    assert.deepEqual([refused.status, refused.header("x-tollgate-limited-by")], [429, "open"]);
    await gate.play(standing("resp_fay_1", "failed"));
    assert.equal((await fetched(gate, "fay", "resp_fay_1")).status, 200);
    await queued(gate, "fay", "resp_fay_3");
    assert.deepEqual([(await state(gate, "fay")).calls, (await state(gate, "fay")).open], [2, 2]);
  });

  test("needs a plan that allows it", async () => {
    const seen = gate.upstream.calls.length;
    const refused = await begin(gate, "gus");
    assert.deepEqual([refused.status, errorOf(refused).code], [400, "unsupported_parameter"]);
    assert.equal(gate.upstream.calls.length, seen);
  });

  test("is not streamed, listed or fetched by what is no id", async () => {
    const told = async (path, method = "GET") => {
      const reply = await gate.send(gate.request("ann", { method, path: `${PATH}${path}` }));
      return [reply.status, errorOf(reply).code];
    };
    const seen = gate.upstream.calls.length;
    const unsupported = [400, "unsupported_parameter"];
    for (const query of ["stream=true", "a=b&stream=1", "include%5B%5D=x&stream=TRUE"]) {
      assert.deepEqual(await told(`/resp_ann?${query}`), unsupported, query);
    }
    for (const path of ["/resp_ann/input_items", "/", "/a.b", "/a%2Fb", "/../models", `/${"a".repeat(129)}`]) {
      const [status] = await told(path);
      assert.ok(status === 404, `${path}: ${status}`);
    }
    assert.deepEqual(await told("/resp_ann", "DELETE"), [405, "method_not_supported"]);
    assert.deepEqual(await told("/resp_ann/cancel", "GET"), [405, "method_not_supported"]);
    assert.equal(gate.upstream.calls.length, seen);
  });
});

describe("the day of a call in the background", () => {
  const policy = { plans: { stock: plan({ budget: stock("usd", "1") }, { background: true }) }, callers: { ann: "stock" } };

  for (const [what, script, want] of [
    ["has what it cost", ended("resp_1"), [1, 1, COST, COST]],
    ["has it no more if it failed before any output", standing("resp_1", "failed"), [0, 0, 0, 0]],
  ]) {
    test(`${what}, once`, () =>
      withDay({ ...policy, site: { daily_calls: 9 } }, async (gate) => {
        await queued(gate, "ann", "resp_1");
        const row = await rowOf(gate, subjectOf("ann"));
        assert.equal(row.calls, 1);
        await gate.play(script);
        await gate.worker.advance(HOUR);
        for (let polls = 0; polls < 2; polls += 1) await fetched(gate, "ann", "resp_1");
        for (const key of [subjectOf("ann"), "*"]) {
          await posted(gate, subjectOf("ann"));
          const { calls, settled, counted, nano_usd: charged } = await rowOf(gate, key);
          assert.deepEqual([calls, settled, counted, charged], want, key);
        }
      }));
  }
});
