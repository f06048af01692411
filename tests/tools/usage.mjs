// Shows what was used, by day, key and plan: `npm run usage -- [--days 7] [--remote]`.
// It is one query over the ledger, to be copied from here:
import { parseArgs } from "node:util";
import { run, setUp } from "./setup.mjs";

const { values } = parseArgs({
  options: { days: { type: "string", default: "7" }, remote: { type: "boolean", default: false } },
});
const days = Number.parseInt(values.days, 10);
if (!(days >= 1)) {
  console.error(`--days: number, got "${values.days}", want a whole number of at least 1`);
  process.exit(1);
}

const query = `
SELECT date(day * 86400, 'unixepoch') AS day, key, plan, calls, refused, settled, input_tokens, output_tokens,
       printf('%.6f', nano_usd / 1e9) AS usd
FROM ledger
WHERE day > unixepoch() / 86400 - ${days}
ORDER BY day DESC, nano_usd DESC`;

const { node, wrangler } = setUp();
const where = values.remote ? "--remote" : "--local";
run(node, [wrangler, "d1", "execute", "tollgate-ledger", where, "--command", query]);
