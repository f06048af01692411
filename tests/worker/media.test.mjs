// Routes that judge, draw, speak and listen: what they hold and charge, and that their bytes are nobody's but the
// client's and the upstream's.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Gate, errorOf, json, plan, stock } from "./support/gate.mjs";

const MEBIBYTE = 1_048_576;
const [MODERATIONS, GENERATIONS, EDITS] = ["/v1/moderations", "/v1/images/generations", "/v1/images/edits"];
const [SPEECH, TRANSCRIPTIONS] = ["/v1/audio/speech", "/v1/audio/transcriptions"];
const models = {
  "omni-moderation-latest": { input: "1", output: "0", encoding: "none" },
  drawer: { input: "1", image_input: "2", output: "3", image_output: "10", max_output: 1_000, context: 100_000 },
  voice: { input: "0", output: "0", per_million_characters: "15" },
  scribe: { input: "0", output: "0", per_minute: "0.006", upstream_model: "scribe-1" },
  hearer: { input: "1", audio_input: "5", output: "10", max_output: 500, context: 16_000 },
};
const POLICY = {
  plans: {
    all: plan({ budget: stock("usd", "1000") }, { body_max: 25 * MEBIBYTE }),
    small: plan({ budget: stock("usd", "1000") }, { body_max: 10_000 }),
  },
  callers: { ann: "all", ben: "small" },
  models,
  aliases: { ear: "scribe" },
  counting: { method: "bytes", per_message: 0, per_call: 0 },
  bounds: { idle_ms: 60_000, hold_ms: 600_000 },
};
const USAGE = { input_tokens: 10, input_tokens_details: { text_tokens: 10 }, output_tokens: 400, total_tokens: 410 };

const answer = (body) => ({ status: 200, headers: { "content-type": "application/json" }, body });
/** An answer of this kind, as pieces of it and as what they wait for. */
const pieces = (kind, sse, more) => ({ status: 200, headers: { "content-type": kind }, sse, ...more });
const piece = (bytes) => ({ base64: bytes.toString("base64") });
const event = (data) => `data: ${JSON.stringify(data)}\n\n`;

describe("media", () => {
  let gate;

  before(async () => {
    gate = await Gate.start(POLICY);
  });

  after(() => gate.stop());

  /** Calls; tells the reply, what was written down, and what the upstream got. The budget says the same. */
  async function called(path, body, { name = "ann", kind = "application/json", script, hooks, ...conduct }) {
    await gate.play(script, hooks);
    const before = await gate.left(name, "budget");
    const seen = gate.upstream.calls.length;
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const request = gate.request(name, { method: "POST", path });
    request.headers.push(["content-type", kind]);
    const reply = await gate.send({ ...request, body: bytes }, conduct);
    const record = await gate.record(reply);
    await gate.settled(name);
    assert.equal(before - (await gate.left(name, "budget")), record.charged?.usd ?? 0);
    const calls = gate.upstream.calls.slice(seen);
    if (calls.length > 0) assert.equal(calls[0].path, path);
    return { reply, record, bytes, held: record.held?.usd, charged: record.charged?.usd, upstream: calls[0] };
  }

  /** A form as the platform's own client writes it. */
  async function formOf(fields) {
    const form = new FormData();
    for (const [name, value] of fields) {
      if (Buffer.isBuffer(value)) form.append(name, new Blob([value], { type: "audio/mpeg" }), "a b.mp3");
      else form.append(name, value);
    }
    const written = new Response(form);
    return [Buffer.from(await written.arrayBuffer()), written.headers.get("content-type")];
  }

  test("a moderation may leave its model out, and is charged what it reads", async () => {
    const script = answer({ id: "modr-1", results: [{ flagged: false }] });
    const { reply, held, charged, bytes, upstream } = await called(MODERATIONS, { input: "A river" }, { script });
    assert.deepEqual([reply.status, held, charged], [200, 7_000, 7_000]);
    assert.deepEqual(json(reply), script.body);
    assert.ok(upstream.body.equals(bytes));
  });

  test("an image is relayed whatever its size, and charged by its tokens", async () => {
    for (const size of [100, 8 * MEBIBYTE]) {
      const body = JSON.stringify({ created: 1, data: [{ b64_json: "A".repeat(size) }], usage: USAGE });
      const half = body.length / 2;
      const chunked = pieces("application/json", [body.slice(0, half), body.slice(half)]);
      for (const script of [answer(body), chunked]) {
        const made = await called(GENERATIONS, { model: "drawer", prompt: "A river", n: 2 }, { script });
        assert.deepEqual([made.reply.status, made.held, made.charged], [200, 20_007_000, 4_010_000]);
        assert.ok(made.reply.whole && made.reply.body.equals(Buffer.from(body)) && made.record.exact);
      }
    }
  });

  test("a stream of images is charged by its last event, which may be of any size", async () => {
    const image = "A".repeat(5 * MEBIBYTE);
    const events = [
      event({ type: "image_generation.partial_image", b64_json: image }),
      event({ type: "image_generation.completed", b64_json: image, usage: USAGE }),
    ];
    const ask = { model: "drawer", prompt: "A river", stream: true, partial_images: 1 };
    const made = await called(GENERATIONS, ask, { script: pieces("text/event-stream", events) });
    assert.deepEqual([made.held, made.charged, made.record.exact], [11_007_000, 4_010_000, true]);
    assert.ok(made.reply.whole && made.reply.body.equals(Buffer.from(events.join(""))));
    const cut = await called(GENERATIONS, ask, { script: pieces("text/event-stream", events.slice(0, 1)) });
    assert.deepEqual([cut.charged, cut.record.exact, cut.record.verdict], [11_007_000, false, "upstream_broke_off"]);
    assert.ok(cut.reply.body.toString("latin1", events[0].length).includes("upstream_invalid"));
  });

  test("sound arrives while it is still being made", async () => {
    const first = Buffer.concat([Buffer.from("ID3\0\xff\xfe", "latin1"), randomBytes(5_000)]);
    const second = randomBytes(70_000);
    let connection;
    const heard = Promise.withResolvers();
    const script = pieces("audio/mpeg", [piece(first), { wait_for_step: "first bytes" }, piece(second)]);
    // The upstream goes on only when the client has what came first.
    const hooks = { step: async () => heard.resolve(await connection.has("ID3")) };
    const onOpen = (opened) => (connection = opened);
    const spoken = await called(SPEECH, { model: "voice", input: "caf\u00e9" }, { script, hooks, onOpen });
    await heard.promise;
    assert.equal(gate.upstream.fault, undefined);
    assert.deepEqual([spoken.held, spoken.charged, spoken.record.exact], [60_000, 60_000, true]);
    assert.ok(spoken.reply.whole && spoken.reply.body.equals(Buffer.concat([first, second])));
    assert.equal(spoken.reply.header("content-type"), "audio/mpeg");
  });

  test("sound that breaks off is charged and does not look whole", async () => {
    const script = pieces("audio/mpeg", [piece(randomBytes(5_000)), { pause_ms: 100 }], { behaviour: "reset" });
    const { reply, charged, record } = await called(SPEECH, { model: "voice", input: "abc" }, { script });
    assert.deepEqual([reply.status, reply.whole, reply.body.length], [200, false, 5_000]);
    assert.deepEqual([charged, record.exact, record.verdict], [45_000, false, "upstream_broke_off"]);
  });

  test("speech that fails before its first byte costs nothing", async () => {
    const script = pieces("audio/mpeg", [], { behaviour: "reset" });
    const { reply, charged } = await called(SPEECH, { model: "voice", input: "abc" }, { script });
    assert.deepEqual([reply.status, charged], [502, undefined]);
  });

  test("a form goes up byte for byte, but for the real name of an alias", async () => {
    const script = answer({ text: "Volga", usage: { type: "duration", seconds: 4 } });
    for (const size of [9_000, 20 * MEBIBYTE]) {
      const sound = randomBytes(size);
      const [body, kind] = await formOf([["file", sound], ["model", "ear"], ["language", "en"], ["prompt", "ear"]]);
      const { reply, held, charged, upstream } = await called(TRANSCRIPTIONS, body, { kind, script });
      const seconds = Math.ceil(size / 1_000) + 1;
      assert.deepEqual([reply.status, held, charged], [200, seconds * 100_000, 400_000]);
      assert.equal(upstream.headers["content-type"], kind);
      const name = Buffer.from('name="model"\r\n\r\near\r\n');
      const place = body.indexOf(name);
      const real = Buffer.from('name="model"\r\n\r\nscribe-1\r\n');
      const wanted = [body.subarray(0, place), real, body.subarray(place + name.length)];
      assert.ok(upstream.body.equals(Buffer.concat(wanted)));
    }
  });

  test("subtitles and streams of a transcript are charged what is known of them", async () => {
    const [body, kind] = await formOf([["model", "hearer"], ["file", randomBytes(9_000)], ["stream", "true"]]);
    const subtitles = pieces("text/vtt", ["WEBVTT\n\n"]);
    const plain = await called(TRANSCRIPTIONS, body, { kind, script: subtitles });
    assert.deepEqual([plain.held, plain.charged, plain.record.exact], [5_500_000, 530_000, false]);
    assert.equal(plain.reply.body.toString(), "WEBVTT\n\n");
    const usage = { type: "tokens", input_tokens: 50, input_token_details: { audio_tokens: 45 }, output_tokens: 9 };
    const events = [
      event({ type: "transcript.text.delta", delta: "Volga" }),
      event({ type: "transcript.text.done", text: "Volga", usage }),
    ];
    const streamed = await called(TRANSCRIPTIONS, body, { kind, script: pieces("text/event-stream", events) });
    assert.deepEqual([streamed.charged, streamed.record.exact], [320_000, true]);
    assert.ok(streamed.reply.whole && streamed.reply.body.equals(Buffer.from(events.join(""))));
  });

  test("images that are changed are counted, and charged by the usage", async () => {
    const image = randomBytes(5_000);
    const fields = [["image[]", image], ["image[]", image], ["prompt", "A river"], ["model", "drawer"]];
    const [body, kind] = await formOf(fields);
    const script = answer({ data: [{ b64_json: "AAAA" }], usage: USAGE });
    const { held, charged, upstream } = await called(EDITS, body, { kind, script });
    assert.deepEqual([held, charged], [(2 * 8_369 + 7) * 2_000 + 10_000_000, 4_010_000]);
    assert.ok(upstream.body.equals(body));
  });

  test("a hostile form is refused before anything is held", async () => {
    const head = (name) => `--b\r\nContent-Disposition: form-data; name=${name}\r\n\r\n`;
    const good = `${head('"model"')}scribe\r\n${head('"file"; filename="a"')}x\r\n`;
    const forms = [
      `${good}${head('"model"')}dearer\r\n--b--\r\n`,
      `${good}${head('"n"; name="model"')}dearer\r\n--b--\r\n`,
      `${good}${head('"x\\"; name=\\"model"')}dearer\r\n--b--\r\n`,
      `${good}${head("\"model\"; filename*=utf-8''x")}dearer\r\n--b--\r\n`,
      `${good}${head('"x"')}\n--b\n${head('"model"').slice(5)}dearer\r\n--b--\r\n`,
      `${good}--b--\r\n${good}--b--\r\n`,
      good,
      `${head('"x"')}\r\n`.repeat(65) + "--b--",
      "--b\r\n".repeat(200_000),
      `--b\r\n${"a".repeat(MEBIBYTE)}`,
      "",
    ];
    for (const form of forms) {
      const script = answer({ text: "Volga" });
      const made = await called(TRANSCRIPTIONS, Buffer.from(form), { kind: "multipart/form-data; boundary=b", script });
      assert.deepEqual([made.reply.status, made.held, made.upstream], [400, undefined, undefined], form.slice(0, 300));
      assert.equal(errorOf(made.reply).code, "invalid_request");
    }
  });

  test("a form that is too large, and a model that has no price for what is asked, are refused", async () => {
    const script = answer({ text: "Volga" });
    const [large, kind] = await formOf([["file", randomBytes(10_000)], ["model", "scribe"]]);
    const tooLarge = await called(TRANSCRIPTIONS, large, { name: "ben", kind, script });
    assert.deepEqual([tooLarge.reply.status, errorOf(tooLarge.reply).code], [413, "request_too_large"]);
    const wrong = [
      [GENERATIONS, { model: "voice", prompt: "x" }],
      [SPEECH, { model: "drawer", input: "x" }],
    ];
    for (const [path, body] of wrong) {
      const { reply, upstream } = await called(path, body, { script });
      const { code, param } = errorOf(reply);
      assert.deepEqual([reply.status, code, param, upstream], [400, "unsupported_parameter", "model", undefined]);
    }
    const unknown = await called(SPEECH, { model: "nobody", input: "x" }, { script });
    assert.deepEqual([unknown.reply.status, errorOf(unknown.reply).code], [404, "model_not_found"]);
  });
});
