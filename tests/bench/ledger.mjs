// What housekeeping of the day's ledger costs: 30 days of 10,000 visitors, and users' rows that are kept for longer.
//   node tests/bench/ledger.mjs
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LEDGER, start } from "../worker/harness/worker.mjs";

const TODAY = 22_343;
const [DAYS, VISITORS, KEEP_DAYS] = [30, 10_000, 7];
const [USER_DAYS, USERS, KEEP_USER_DAYS] = [400, 100, 400];
const PRUNE_VISITORS = readFileSync(join(import.meta.dirname, "../../src/edge/sql/prune_visitors.sql"), "utf8");
const PRUNE_ALL = "DELETE FROM ledger WHERE day < ?1";

const FILL = `WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ?3)
  INSERT OR IGNORE INTO ledger (day, key, plan, calls, counted, settled, input_tokens, output_tokens, nano_usd)
  SELECT ?1, ?2 || printf('%032x', number * 2654435761 % 4294967296), 'plan', 3, 60000, 3, 30, 15, 60000 FROM numbers`;

const worker = await start({ env: {}, bindings: { LEDGER } });
const count = async (where) => (await worker.sql(`SELECT count(*) AS rows FROM ledger WHERE ${where}`))[0].rows;

async function fill(day) {
  await worker.sql(FILL, day, "visitor:", VISITORS);
  await worker.sql("INSERT OR IGNORE INTO ledger (day, key) VALUES (?1, '*')", day);
}

/** Both deletes as the product runs them, and how long they took together, the hop to the database included. */
async function prune(what, day) {
  const before = await count("1");
  const began = performance.now();
  await worker.sql(PRUNE_VISITORS, day - KEEP_DAYS);
  await worker.sql(PRUNE_ALL, day - KEEP_USER_DAYS);
  const ms = performance.now() - began;
  const after = await count("1");
  console.log(`${what}: ${before - after} rows deleted in ${ms.toFixed(0)} ms, ${after} left`);
}

for (let day = TODAY - DAYS; day < TODAY; day += 1) await fill(day);
for (let day = TODAY - USER_DAYS; day < TODAY; day += 1) await worker.sql(FILL, day, "user:", USERS);
const [visitors, users] = [await count("key LIKE 'visitor:%'"), await count("key LIKE 'user:%'")];
console.log(`filled: ${visitors} rows of visitors (${DAYS} days), ${users} of users (${USER_DAYS} days)`);

await fill(TODAY);
await prune("the backlog", TODAY);
console.log(`kept: ${await count("key LIKE 'visitor:%'")} rows of visitors, ${KEEP_DAYS} days and today`);
for (const day of [TODAY + 1, TODAY + 2]) {
  await fill(day);
  await prune("one day", day);
}
await prune("nothing", TODAY + 2);
await worker.stop();
