// `POST /v1/tokens/count`: what a call would be held at, counted as its model counts, and nothing spent.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CHAT, Gate, errorOf, json, plan, stock, subjectOf } from "./support/gate.mjs";

const file = join(import.meta.dirname, "..", "fixtures", "token_counts.jsonl");
const strings = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const PRICE = { input: "1", output: "2", max_output: 100, context: 1_000_000 };

function ask(content, more = {}) {
  return { model: "gpt-4o", messages: [{ role: "user", content }], max_tokens: 50, ...more };
}

describe("counting a call's tokens", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({
      plans: {
        stock: plan({ budget: stock("usd", "1000"), words: stock("tokens", 1_000_000) }),
        few: plan({ calls: { unit: "requests", burst: 1, refill: 30, per: "minute" }, words: stock("tokens", 100) }),
      },
      callers: { ann: "stock", ben: "few", cid: "few" },
      models: { "gpt-4o": PRICE, "gpt-4": PRICE, bytes: { ...PRICE, encoding: "none" } },
    });
  });

  after(() => gate.stop());

  const count = (name, body) => gate.send(gate.request(name, { method: "POST", path: "/v1/tokens/count", body }));

  async function inputTokens(body) {
    const reply = await count("ann", body);
    assert.equal(reply.status, 200, reply.body.toString());
    return json(reply).input_tokens;
  }

  for (const [model, place] of [["gpt-4o", 1], ["gpt-4", 2]]) {
    test(`counts as ${model}'s own tokeniser does`, async () => {
      const overhead = await inputTokens(ask("", { model }));
      // A few of each kind: every seventh, which is no multiple of how many there are of a kind.
      const some = strings.filter((_, index) => index % 7 === 0);
      assert.ok(some.length > 100);
      const counts = await Promise.all(some.map(([, , , text]) => inputTokens(ask(text, { model }))));
      const wrong = some.filter((string, index) => counts[index] - overhead !== string[place]);
      assert.deepEqual(wrong.map(([kind, , , text]) => `${kind}: ${text.slice(0, 60)}`), []);
    });
  }

  test("counts bytes where the model's vocabulary is not known", async () => {
    const [none, some] = ["", "Волга 🏞️"];
    const overhead = await inputTokens(ask(none, { model: "bytes" }));
    assert.equal((await inputTokens(ask(some, { model: "bytes" }))) - overhead, Buffer.byteLength(some));
  });

  test("says what would be held, which is what a call then holds", async () => {
    const body = ask("Name three rivers.", { n: 2 });
    const { hold, ...counted } = json(await count("ann", body));
    assert.deepEqual([counted.output_tokens_max, hold.output_tokens, hold.requests], [100, 100, 1]);
    assert.equal(hold.input_tokens, counted.input_tokens);
    assert.equal(hold.nano_usd, counted.input_tokens * 1_000 + 100 * 2_000);
    assert.equal(Number(hold.usd), hold.nano_usd / 1e9);
    assert.equal(counted.admitted_now, true);
    const reply = await gate.send(gate.request("ann", { method: "POST", path: CHAT, body }));
    const { held } = await gate.record(reply);
    assert.equal(held.usd, hold.nano_usd);
  });

  test("spends nothing, stores nothing, and reaches no upstream", async () => {
    await gate.worker.setFaults([]);
    const seen = gate.upstream.calls.length;
    const short = ask("Volga", { max_tokens: 9 });
    for (let time = 0; time < 5; time += 1) assert.equal((await count("cid", short)).status, 200);
    assert.deepEqual(new Set((await gate.worker.commands()).map(({ verb }) => verb)), new Set(["check"]));
    assert.deepEqual(await gate.worker.object(subjectOf("cid")).stored(), { values: {}, alarm: null });
    const { limits } = await gate.usage("cid");
    assert.deepEqual(limits.map(({ left }) => left).sort(), [1, 100].sort());
    assert.equal(gate.upstream.calls.length, seen);
  });

  test("tells that a call would be refused, by what, and for how long", async () => {
    const short = ask("Volga", { max_tokens: 9 });
    assert.equal((await gate.send(gate.request("ben", { method: "POST", path: CHAT, body: short }))).status, 200);
    await gate.settled("ben");
    const soon = json(await count("ben", short));
    assert.deepEqual([soon.admitted_now, soon.refusal], [false, { limited_by: "calls", retry_after_ms: 2_000 }]);
    const never = json(await count("ben", ask("river ".repeat(200), { max_tokens: 9 })));
    assert.deepEqual([never.admitted_now, never.refusal], [false, { limited_by: "words", retry_after_ms: null }]);
  });

  test("refuses what the call itself would be refused for", async () => {
    const faults = [
      [ask("x", { model: "unknown" }), 404, "model_not_found"],
      [{ model: "gpt-4o", messages: "x" }, 400, "invalid_request"],
      [ask("x", { n: 99 }), 400, "invalid_request"],
      [Buffer.from("{"), 400, "invalid_request"],
    ];
    for (const [body, status, code] of faults) {
      for (const path of ["/v1/tokens/count", CHAT]) {
        const reply = await gate.send(gate.request("ann", { method: "POST", path, body }));
        assert.deepEqual([reply.status, errorOf(reply).code], [status, code]);
      }
    }
    assert.equal((await count(null, ask("x"))).status, 401);
  });
});
