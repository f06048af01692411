// The contract of the day's ledger, over the statements themselves on the real database. `../ledger_contract.rs` holds
// the ledger in memory to the very same data.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { LEDGER, start } from "./harness/worker.mjs";
import { statement } from "./support/day.mjs";

const DAY = 100;
const read = (...path) => readFileSync(join(import.meta.dirname, "..", ...path), "utf8");
const cases = JSON.parse(read("ledger_contract.json"));
const [GATE, POST] = [statement("gate"), statement("post")];
// Short statements stand where they are used.
const adapter = read("..", "src", "edge", "d1.rs");
const short = (name) => JSON.parse(new RegExp(`const ${name}: &str = (".*");`).exec(adapter)[1]);

const GATE_FIELDS = new Set(["day", "key", "plan", "estimate", "own", "site", "counts_for_site"]);
const COLUMNS = ["calls", "refused", "counted", "settled", "input", "output", "usd"];
const POST_FIELDS = new Set(["day", "key", "plan", ...COLUMNS, "site_calls", "site_counted"]);

function known(object, fields) {
  for (const name of Object.keys(object)) assert.ok(fields.has(name), `unknown ${name}`);
}

/** What the gate's statement binds, in the order of its parameters. */
function gateValues({ day = DAY, key, plan = "", estimate, own = {}, site = {}, counts_for_site: counts = true }) {
  const caps = [own.calls, own.usd, site.calls, site.usd].map((cap) => cap ?? null);
  return [day, key, plan, estimate, ...caps, Number(counts)];
}

function postValues({ day = DAY, key, plan = "", ...amounts }, number) {
  const amount = (name) => amounts[name] ?? 0;
  return [day, key, plan, number, ...COLUMNS.map(amount), amount("site_calls"), amount("site_counted")];
}

/** A row as the data writes it. */
function shown({ key, calls, counted, pruned }) {
  return pruned ? [key, calls, counted, true] : [key, calls, counted];
}

/** A row without the columns that are nothing. */
function full({ input_tokens: input, output_tokens: output, nano_usd: usd, pruned, ...row }) {
  const all = { ...row, input, output, usd, pruned: pruned === 1 };
  return Object.fromEntries(Object.entries(all).filter(([name, value]) => value || name === "day"));
}

describe("the statements over the database keep the contract:", () => {
  let worker;

  before(async () => {
    worker = await start({ env: {}, bindings: { LEDGER } });
  });

  after(() => worker.stop());

  const acts = {
    async gate(written, { rows: want }) {
      known(written, GATE_FIELDS);
      const rows = await worker.sql(GATE, ...gateValues(written));
      // In whatever order they come: the caller's, then the site's.
      const order = (row) => (row.key === "*" ? 1 : 0);
      assert.deepEqual(rows.sort((one, other) => order(one) - order(other)).map(shown), want);
    },
    async post({ number, entries }) {
      for (const entry of entries) {
        known(entry, POST_FIELDS);
        await worker.sql(POST, ...postValues(entry, number));
      }
    },
    async row({ day = DAY, key }, { is: want }) {
      const [row] = await worker.sql(short("ROW"), day, key);
      assert.deepEqual(row ? shown(row) : null, want);
    },
    async prune({ day, keep_days: keep, keep_user_days: keepUsers }) {
      await worker.sql(statement("prune_visitors"), day - keep);
      await worker.sql(short("PRUNE_ALL"), day - keepUsers);
      await worker.sql(short("PRUNED"), day);
    },
    async all(want) {
      const rows = await worker.sql("SELECT * FROM ledger ORDER BY day, key");
      assert.deepEqual(rows.map(full), want.map((row) => ({ day: DAY, ...row })));
    },
  };

  for (const { name, steps } of cases) {
    test(name, async () => {
      await worker.sql("DELETE FROM ledger");
      for (const step of steps) {
        const [act] = Object.keys(step);
        await acts[act](step[act], step);
      }
    });
  }
});
