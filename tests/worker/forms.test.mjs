// Forms that somebody has tampered with: what the Worker lets through, another reader reads as it did.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Gate, plan, stock } from "./support/gate.mjs";

const PATH = "/v1/audio/transcriptions";
const TIMES = 1_500;
const perMinute = (dollars) => ({ input: "0", output: "0", per_minute: dollars });
const MODELS = { cheap: perMinute("0.006"), dear: perMinute("6") };
const POLICY = {
  plans: { all: plan({ budget: stock("usd", "1000000") }) },
  callers: { ann: "all" },
  models: MODELS,
};
const KIND = "multipart/form-data; boundary=b";
const part = (head, content) => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
const SOUND = part('name="file"; filename="a.mp3"', "\0\r\n--a--\r\n");
const FORMS = [
  `${part('name="model"', "cheap")}${SOUND}${part('name="prompt"', "x")}--b--\r\n`,
  `${SOUND}${part('name="prompt"', "dear")}${part('name="model"', "cheap")}--b--`,
];
/** What could be read in one way here and in another there. */
const PIECES = [
  "\r\n", "\n", "\r", "\r\n\r\n", "\n\n", "--b", "--b--", "--b\n", "--b \r\n", "--", '"', "'", ";", "; ", ":", "=", "*",
  " ", "\t", "\0", "\\", '\\"', "%22", "%6d", "é", "\u2028", "x", "[]", 'name="model"', "name=model", "name=", "Name=",
  '; name="model"', "; name*=utf-8''model", '; filename="x"', '; filename*="x"', "model", "Model", "dear", "cheap",
  part('name="model"', "dear"), part("name=model", "dear"), part('name="model"; filename="x"', "dear"),
  "Content-Disposition: form-data; name=\"model\"\r\n", "Content-Type: text/plain; charset=utf-16\r\n",
  "Content-Transfer-Encoding: base64\r\n", "\r\n Content-Disposition: form-data; name=\"model\"",
];

/** The same numbers every time (mulberry32). */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** A form with one to three changes: something put in, taken out, or written over. */
function tampered(next) {
  let form = FORMS[next(FORMS.length)];
  for (let times = 1 + next(3); times > 0; times -= 1) {
    const [at, out] = [next(form.length), next(3) === 0 ? next(6) : 0];
    const put = next(6) === 0 ? "" : PIECES[next(PIECES.length)];
    form = form.slice(0, at) + put + form.slice(at + out);
  }
  return Buffer.from(form);
}

/** What the platform's own reader finds, or null if it finds no form. */
async function read(body, kind) {
  try {
    return await new Response(body, { headers: { "content-type": kind } }).formData();
  } catch {
    return null;
  }
}

describe("a form that somebody has tampered with", () => {
  let gate;

  before(async () => {
    gate = await Gate.start(POLICY);
    const headers = { "content-type": "application/json" };
    await gate.play({ status: 200, headers, body: { text: "Volga", usage: { type: "duration", seconds: 1 } } });
  });

  after(() => gate.stop());

  test("is refused, or names the same model to every reader", async () => {
    const next = numbers(20_310_305);
    let passed = 0;
    for (let time = 0; time < TIMES; time += 1) {
      const body = tampered(next);
      const seen = gate.upstream.calls.length;
      const request = gate.request("ann", { method: "POST", path: PATH, headers: [["content-type", KIND]] });
      const reply = await gate.send({ ...request, body });
      const shown = JSON.stringify(body.toString());
      assert.ok([200, 400, 404].includes(reply.status), `${reply.status}: ${shown}`);
      const [call] = gate.upstream.calls.slice(seen);
      assert.equal(call === undefined, reply.status !== 200, shown);
      if (!call) continue;
      passed += 1;
      assert.ok(call.body.equals(body), shown);
      const form = await read(body, KIND);
      if (!form) continue;
      const { model } = await gate.record(reply);
      assert.deepEqual(form.getAll("model"), [model], shown);
      assert.equal(form.getAll("file").length, 1, shown);
    }
    // Changes inside of a text or of the sound are none of our business.
    assert.ok(passed > TIMES / 20 && passed < TIMES / 2, `${passed} of ${TIMES} passed`);
  });
});
