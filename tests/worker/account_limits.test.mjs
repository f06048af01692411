// The limits of our own account at an upstream: one caller's burst is refused by us, before the provider refuses everybody.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startUpstream } from "./harness/upstream.mjs";
import { Gate, SECOND, errorOf, plan, stock } from "./support/gate.mjs";

const BURST = 4;
const USED = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const ANSWER = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: { choices: [{ index: 0, message: { role: "assistant", content: "Volga" }, finish_reason: "stop" }], usage: USED },
  delay_ms: 20,
};

describe("an upstream whose account has limits", () => {
  let gate;
  let provider;
  before(async () => {
    provider = await startUpstream();
    await provider.answerWith(ANSWER);
    const limits = {
      rpm: { unit: "requests", burst: BURST, refill: 1, per: "second" },
      free: { unit: "usd", amount: "0.11", window: "day" },
    };
    gate = await Gate.start({
      plans: { roomy: plan({ budget: stock("usd", "100") }) },
      callers: { ann: "roomy", ben: "roomy", cleo: "roomy" },
      models: { alpha: { input: "1", output: "2", max_output: 1_000, upstream: "provider" } },
      upstreams: { provider: { base_url: `${provider.origin}/v1`, limits } },
    });
  });
  after(async () => {
    await gate.stop();
    await provider.close();
  });

  test("lets through what it allows over all callers at once, and tells the others the exact wait", async () => {
    const names = ["ann", "ben", "cleo"];
    const replies = await Promise.all(Array.from({ length: 12 }, (_, place) => gate.chat(names[place % 3])));
    const passed = replies.filter(({ status }) => status === 200);
    assert.equal(passed.length, BURST);
    assert.equal(provider.calls.length, BURST, "the others never reached the provider");
    for (const reply of replies.filter(({ status }) => status !== 200)) {
      assert.deepEqual([reply.status, reply.header("x-tollgate-limited-by")], [429, "rpm"]);
      assert.equal(errorOf(reply).code, "rate_limit_exceeded");
      assert.equal(reply.header("retry-after-ms"), "1000");
    }
    await gate.worker.advance(SECOND - 1);
    assert.equal((await gate.chat("ben")).status, 429);
    await gate.worker.advance(1);
    assert.equal((await gate.chat("ben")).status, 200);
  });
});
