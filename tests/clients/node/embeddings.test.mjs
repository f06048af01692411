// What a program gets of embeddings.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect, errors, freshKey, habits, statuses, told } from "./support.mjs";

const MODEL = { model: "demo" };

describe("embeddings", { concurrency: true }, () => {
  test("every text has a vector of its own", async () => {
    const key = await freshKey("roomy");
    const { vectors, tokens } = await connect(key).embed(["hi there", "hello", "hi there"], MODEL);
    assert.deepEqual(vectors.map(({ length }) => length), [8, 8, 8]);
    for (const vector of vectors) assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-3);
    assert.deepEqual(vectors[0], vectors[2]);
    assert.notDeepEqual(vectors[0], vectors[1]);
    assert.equal(tokens, habits.countsEmbeddings ? 5 : undefined);
    assert.deepEqual(await statuses(key), [200]);
  });

  test("the dimensions are those that were asked for", async () => {
    const { vectors } = await connect(await freshKey("roomy")).embed(["hi there"], { ...MODEL, dimensions: 3 });
    assert.deepEqual(vectors.map(({ length }) => length), [3]);
  });

  test("an unknown model", async () => {
    const key = await freshKey("roomy");
    const error = await connect(key).embed(["hi"], { model: "nonesuch" }).catch((thrown) => thrown);
    const { name, status, code } = told(error);
    assert.deepEqual([name, status, code], [errors.unknownModel, 404, "model_not_found"]);
    assert.deepEqual(await statuses(key), [404]);
  });

  test("a short wait is sat out", async () => {
    const key = await freshKey("short");
    const caller = connect(key);
    for (let turn = 0; turn < 10 && !(await statuses(key)).includes(429); turn += 1) {
      // Two at once, so that one has to wait; on a very slow machine they may come one after the other.
      await Promise.all([caller.embed(["hi"], MODEL), caller.embed(["ho"], MODEL)]);
    }
    const seen = await statuses(key);
    assert.ok(seen.includes(429));
    assert.equal(seen.at(-1), 200);
  });
});
