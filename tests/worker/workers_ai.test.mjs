// Models behind the platform's AI binding: its own code in workerd, over a scripted platform. Whatever a model family
// answers comes out in OpenAI's shape, is charged what it cost, and leaves nothing held.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bytesOf } from "./harness/script.mjs";
import { MODELS } from "./harness/worker.mjs";
import { DAY, Gate, SECOND, errorOf, json, plan, stock } from "./support/gate.mjs";
import { DONE } from "./support/sse.mjs";
import { CALLED, CONTENT, FAMILIES, TOOL, TOOL_CALLS, events, fails, plain, together } from "./support/workers_ai.mjs";

const LLAMA = FAMILIES["Llama 3.3"].model;
const BGE = "@cf/baai/bge-m3";
const IDLE = 300;

const start = (more = {}) =>
  Gate.start({
    plans: { stock: plan({ budget: stock("usd", "100") }) },
    callers: { ann: "stock" },
    upstreams: { "workers-ai": { kind: "workers_ai" } },
    models: { [BGE]: { input: "0.012", output: "0", context: 60_000, upstream: "workers-ai" } },
    shipped_prices: true,
    bounds: { idle_ms: IDLE, first_byte_ms: 5_000 },
    bindings: { AI: MODELS },
    ...more,
  });

/** The tokens that the call was charged, and whether exactly; nothing is held any more. */
async function charged(gate, reply) {
  const { charged: cost, exact, verdict, held } = await gate.record(reply);
  await gate.settled("ann");
  return { read: cost?.input, written: cost?.output, exact, verdict, held: held?.input };
}

const EXACT = { read: 10, written: 5, exact: true, verdict: "ok" };
const without = ({ held, ...rest }) => rest;
const stamped = (text) => /^chatcmpl-[0-9a-f]{12}$/.test(text);

describe("with the binding", () => {
  let gate;
  before(async () => (gate = await start()));
  after(() => gate.stop());

  /** What the platform was asked last. */
  const asked = () => {
    const { headers, body } = gate.upstream.calls.at(-1);
    return { model: headers["mf-header-cf-consn-model-id"], ...JSON.parse(body) };
  };

  for (const [family, { model, plain: body, stream, own }] of Object.entries(FAMILIES)) {
    test(`${family}: a plain answer`, async () => {
      await gate.play(plain(body));
      const reply = await gate.chat("ann", { model });
      assert.equal(reply.status, 200, reply.body.toString());
      const { id, object, created, choices, usage } = json(reply);
      assert.deepEqual([choices.length, choices[0].message.content, choices[0].finish_reason], [1, CONTENT, "stop"]);
      assert.deepEqual([object, usage.total_tokens], ["chat.completion", 15]);
      if (own) assert.deepEqual(reply.body, bytesOf(plain(body)));
      else assert.ok(stamped(id) && created === Math.floor(gate.worker.now / 1_000), `${id} ${created}`);
      assert.equal(reply.header("x-upstream-request-id"), "req-31");
      assert.equal(asked().model, model);
      assert.deepEqual(without(await charged(gate, reply)), EXACT);
    });

    test(`${family}: a stream`, async () => {
      await gate.play(events(stream));
      const shown = await gate.stream("ann", { model, stream_options: { include_usage: true } });
      const hidden = await gate.stream("ann", { model });
      for (const reply of [shown, hidden]) {
        assert.equal(reply.status, 200, reply.body.toString());
        const { text, reasons, ids, usage, done } = together(reply.body);
        assert.deepEqual([text, reasons, ids.size, done], [CONTENT, ["stop"], 1, true], reply.body.toString());
        assert.equal(usage?.total_tokens, reply === shown ? 15 : undefined);
        assert.deepEqual(without(await charged(gate, reply)), EXACT);
      }
      if (own) assert.deepEqual(shown.body, bytesOf(events(stream)));
      assert.equal(asked().inputs.stream, true);
    });
  }

  for (const [how, { plain: body, stream }] of Object.entries(TOOL_CALLS)) {
    test(`calls of tools, ${how}`, async () => {
      await gate.play(plain(body));
      const whole = await gate.chat("ann", { model: LLAMA, tools: [TOOL] });
      const [{ message, finish_reason }] = json(whole).choices;
      assert.deepEqual([message.content, finish_reason, message.tool_calls.length], [null, "tool_calls", 1]);
      const [{ id, type, function: called }] = message.tool_calls;
      assert.deepEqual([type, called.name, JSON.parse(called.arguments)], ["function", "river", CALLED]);
      assert.ok(id.length > 1);
      await gate.play(events(stream));
      const streamed = await gate.stream("ann", { model: LLAMA, tools: [TOOL] });
      const { calls, reasons, text } = together(streamed.body);
      assert.deepEqual([calls.length, calls[0].name, JSON.parse(calls[0].arguments)], [1, "river", CALLED]);
      assert.deepEqual([text, reasons], ["", ["tool_calls"]]);
      assert.deepEqual(asked().inputs.tools, [TOOL]);
      for (const reply of [whole, streamed]) assert.deepEqual(without(await charged(gate, reply)), EXACT);
    });
  }

  test("a model that does not stream is streamed all the same", async () => {
    for (const family of ["GPT-OSS", "Llama 3.3"]) {
      const { model, plain: body } = FAMILIES[family];
      await gate.play(plain(body));
      const reply = await gate.stream("ann", { model });
      assert.match(reply.header("content-type"), /^text\/event-stream/);
      const { text, reasons, ids, usage, done } = together(reply.body);
      assert.deepEqual([text, reasons, ids.size, usage, done], [CONTENT, ["stop"], 1, null, true]);
      assert.deepEqual(without(await charged(gate, reply)), EXACT);
    }
  });

  test("an answer in JSON is the text of it, and its schema arrives bare", async () => {
    const schema = { type: "object", properties: { rivers: { type: "array" } } };
    const response_format = { type: "json_schema", json_schema: { name: "rivers", strict: true, schema } };
    await gate.play(plain({ response: { rivers: ["Volga"] }, usage: { prompt_tokens: 10, completion_tokens: 5 } }));
    const reply = await gate.chat("ann", { model: LLAMA, response_format });
    assert.deepEqual(JSON.parse(json(reply).choices[0].message.content), { rivers: ["Volga"] });
    assert.deepEqual(asked().inputs.response_format, { type: "json_schema", json_schema: schema });
    assert.deepEqual(without(await charged(gate, reply)), EXACT);
  });

  test("the cap that is held is the one that is obeyed, and no message is without a text", async () => {
    await gate.play(plain(FAMILIES["Llama 3.3"].plain));
    const messages = [{ role: "user", content: "Hi" }, { role: "assistant", content: null, tool_calls: [] }];
    const more = { model: LLAMA, messages, max_tokens: undefined, max_completion_tokens: 77, user: null };
    const reply = await gate.chat("ann", more);
    const { inputs, options } = asked();
    assert.deepEqual(inputs, { messages: [messages[0], { ...messages[1], content: "" }], max_tokens: 77 });
    assert.deepEqual(options, { returnRawResponse: true });
    assert.equal((await gate.record(reply)).held.output, 77);
  });

  test("embeddings are a list, as numbers or packed, and are charged", async () => {
    await gate.play(plain({ shape: [2, 3], data: [[0.5, -1.25, 0], [1, 2, 3]], pooling: "cls" }));
    const call = (more) =>
      gate.send(
        gate.request("ann", {
          method: "POST",
          path: "/v1/embeddings",
          body: { model: BGE, input: ["Volga", "Niger"], ...more },
        }),
      );
    const numbers = await call({});
    assert.equal(numbers.status, 200, numbers.body.toString());
    const { object, data, model } = json(numbers);
    assert.deepEqual([object, model, data.map(({ index }) => index)], ["list", BGE, [0, 1]]);
    assert.deepEqual(data.map(({ embedding }) => embedding), [[0.5, -1.25, 0], [1, 2, 3]]);
    assert.deepEqual(asked().inputs, { text: ["Volga", "Niger"] });
    const packed = json(await call({ encoding_format: "base64" })).data[0].embedding;
    assert.deepEqual([...new Float32Array(new Uint8Array(Buffer.from(packed, "base64")).buffer)], [0.5, -1.25, 0]);
    // It says of no usage, so it costs what was held, and says so.
    const { read, exact, held } = await charged(gate, numbers);
    assert.deepEqual([read, exact], [held, false]);
    assert.deepEqual([held > 0, json(numbers).usage], [true, { prompt_tokens: held, total_tokens: held }]);
    for (const [more, param] of [[{ input: [1, 2] }, "input"], [{ dimensions: 2 }, "dimensions"]]) {
      const refused = await call(more);
      assert.deepEqual([refused.status, errorOf(refused).param], [400, param]);
      assert.equal((await charged(gate, refused)).read, undefined);
    }
  });

  const NO = { "retry-after": () => undefined };
  const untilMidnight = () => String(Math.ceil((DAY - (gate.worker.now % DAY)) / SECOND));
  const FAILS = {
    "has no room": [fails(429, { internalCode: 3040, description: "Capacity temporarily exceeded" }), 429, "3040", NO],
    "has used up its day": [
      fails(429, { errors: [{ code: 3036, message: "Used up" }], success: false, result: {} }),
      429,
      "3036",
      { "retry-after": untilMidnight, "x-tollgate-limited-by": () => "upstream" },
    ],
    "does not know the model": [fails(400, { errors: [{ code: 5007, message: "No such model" }] }), 400, "5007", NO],
    "finds the input wrong": [fails(400, { errors: [{ message: "AiError: 5006: oneOf" }] }), 400, "5006", NO],
    "wants terms agreed to": [fails(403, { internalCode: 5016, description: "Agree" }), 502, "upstream_auth", NO],
    "takes too long": [fails(408, { internalCode: 3007, description: "Timeout" }), 504, "upstream_timeout", NO],
    "fails": [fails(500, "Internal error"), 502, "upstream_failed", NO],
    "fails with a success": [plain({ success: false, errors: [{ code: 1000 }] }), 502, "upstream_failed", NO],
    "answers nothing": [plain({}), 502, "upstream_invalid", NO],
    "resets the connection": [{ ...plain({}), behaviour: "connection-refused" }, 502, "upstream_unreachable", NO],
  };
  for (const [what, [script, status, code, headers]] of Object.entries(FAILS)) {
    test(`a platform that ${what}`, async () => {
      await gate.play(script);
      for (const stream of [false, true]) {
        // What an upstream's own limit says is remembered for a minute.
        await gate.worker.advance(61 * SECOND);
        const reply = await gate.chat("ann", { model: LLAMA, stream });
        assert.deepEqual([reply.status, errorOf(reply).code], [status, code]);
        for (const [name, value] of Object.entries(headers)) assert.equal(reply.header(name), value());
        assert.equal((await charged(gate, reply)).read, undefined);
      }
    });
  }

  const BEGUN = [{ response: "Volga", p: "ab" }];
  const BREAKS = {
    "stops short": events(BEGUN),
    "resets the connection": events(BEGUN, { behaviour: "reset" }),
    "falls silent": events(BEGUN, { behaviour: "hang" }),
    "is at an error": events([...BEGUN, { errors: [{ code: 3040, message: "No room" }] }, DONE]),
  };
  for (const [what, script] of Object.entries(BREAKS)) {
    test(`a stream that ${what}`, async () => {
      await gate.play(script);
      const reply = await gate.stream("ann", { model: LLAMA });
      const text = reply.body.toString();
      assert.match(text, /"content":"Volga"/);
      assert.match(text, /"error":\{/);
      assert.doesNotMatch(text, /"finish_reason":"|\[DONE\]/);
      const { read, written, exact, held } = await charged(gate, reply);
      assert.deepEqual([read, written > 0 && written < 5, exact], [held, true, false]);
    });
  }

  test("a client that leaves ends the platform's work", async () => {
    await gate.play(events(BEGUN, { behaviour: "hang" }));
    const arrived = gate.upstream.nextCall();
    const reply = await gate.stream("ann", { model: LLAMA }, { leavesAfterEvent: 2 });
    assert.notEqual(await (await arrived).cancelled, null);
    assert.equal((await charged(gate, reply)).exact, false);
    assert.equal((await gate.record(reply)).client_left, true);
  });

  test("what is not there is told: other routes, other kinds of call", async () => {
    const elsewhere = { method: "POST", path: "/v1/responses", body: { model: LLAMA, input: "Hi" } };
    assert.equal((await gate.send(gate.request("ann", elsewhere))).status, 404);
    const batch = await gate.chat("ann", { model: LLAMA, requests: [{ prompt: "Hi", max_tokens: 9_000 }] });
    assert.deepEqual([batch.status, errorOf(batch).param], [400, "requests"]);
    const model = await gate.send(gate.request("ann", { path: `/v1/models/${LLAMA}` }));
    assert.deepEqual([model.status, json(model).id], [200, LLAMA]);
    await gate.settled("ann");
  });
});

describe("with something else in its place", () => {
  const PLACES = {
    "nothing": [null, 502, "upstream_unreachable", /there is no binding AI/],
    "a binding that throws a code": [{ type: "text", value: "AiError: 3040: No room" }, 429, "3040"],
    "a binding that throws": [{ type: "text", value: "Network connection lost." }, 502, "upstream_unreachable", /lost/],
    "what has no models": [{ type: "json", value: {} }, 502, "upstream_unreachable", /not reached/],
  };
  for (const [what, [AI, status, code, line]] of Object.entries(PLACES)) {
    test(what, async () => {
      const gate = await start({ bindings: { AI } });
      try {
        const reply = await gate.chat("ann", { model: LLAMA });
        assert.deepEqual([reply.status, errorOf(reply).code], [status, code]);
        assert.equal((await charged(gate, reply)).read, undefined);
        if (line) assert.ok(gate.worker.lines.some((own) => line.test(own)), gate.worker.lines.join("\n"));
      } finally {
        await gate.stop();
      }
    });
  }
});
