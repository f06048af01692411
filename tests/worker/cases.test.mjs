// The shared cases, over the real Worker. What each member of a case means is said in tests/cases/README.md.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { runCase } from "./cases/run.mjs";

const folder = join(import.meta.dirname, "..", "cases");
const cases = readFileSync(join(folder, "cases.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
const skipped = JSON.parse(readFileSync(join(folder, "skipped.json"), "utf8"));
/** Parts of the product that a later version has; a case that needs one of them waits for it. */
const LATER = ["jwt"];
/** Only these run, if any are named, by their ids or the beginnings of them: CASES=LM-01,SF. */
const chosen = process.env.CASES?.split(",");

test("every case is run, or is skipped for a part that is not built yet", () => {
  const ids = cases.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "an id is there twice");
  const waiting = cases.filter(({ needs = [] }) => needs.some((need) => LATER.includes(need))).map(({ id }) => id);
  assert.deepEqual(Object.keys(skipped).sort(), waiting.sort());
  for (const [id, reason] of Object.entries(skipped)) assert.ok(reason.length > 0, `${id} is skipped without a reason`);
});

describe("case", { concurrency: 4 }, () => {
  for (const written of cases) {
    const { id, why } = written;
    if (chosen && !chosen.some((begin) => id.startsWith(begin))) continue;
    test(`${id}: ${why}`, { skip: skipped[id] ?? false, timeout: 60_000 }, () => runCase(written));
  }
});
