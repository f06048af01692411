// Shows what was used, by day, key and plan:
//   npm run usage                           what `npm start` has recorded, the one that was started last
//   PORT=8788 npm run usage                 the one on this port
//   npm run usage -- --remote --days 30     what was deployed has recorded, as wrangler.toml names it
// It is one query over the ledger, to be copied from here:
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { CONFIG, STARTS, environment } from "./local.mjs";
import { attempt, fail, root, setUpWrangler } from "./setup.mjs";

const query = (days) => `
SELECT date(day * 86400, 'unixepoch') AS day, key, plan, calls, refused, settled, input_tokens, output_tokens,
       printf('%.6f', nano_usd / 1e9) AS usd
FROM ledger
WHERE day > unixepoch() / 86400 - ${days}
ORDER BY day DESC, nano_usd DESC`;

/** The wrangler file that `npm start` wrote last, or that of a port; nothing if there is none. */
export function localConfig(port, folder = STARTS) {
  const ports = port ? [port] : existsSync(folder) ? readdirSync(folder) : [];
  const writtenAt = (path) => statSync(path).mtimeMs;
  const paths = ports.map((name) => join(folder, name, CONFIG)).filter((path) => existsSync(path));
  return paths.sort((one, other) => writtenAt(other) - writtenAt(one))[0];
}

/** Where wrangler finds the ledger: its arguments and its environment. */
export function place({ remote, config = localConfig(process.env.PORT) }) {
  if (remote) return { args: ["--remote", "--config", join(root, "wrangler.toml")], env: process.env };
  if (!config) {
    const where = process.env.PORT ? ` on port ${process.env.PORT}` : "";
    fail(`\`npm start\` has not run here${where} yet, so it has recorded nothing; --remote asks what was deployed`);
  }
  const args = ["--local", "--config", config, "--persist-to", join(dirname(config), "state")];
  return { args, env: environment({}) };
}

function main() {
  const { values } = parseArgs({
    options: { days: { type: "string", default: "7" }, remote: { type: "boolean", default: false } },
  });
  if (!/^[1-9]\d{0,5}$/.test(values.days)) fail(`--days: got "${values.days}", want a whole number of at least 1`);
  const { args, env } = place(values);
  const { node, wrangler } = setUpWrangler();
  const execute = [wrangler, "d1", "execute", "LEDGER", ...args, "--command", query(values.days)];
  process.exitCode = attempt(node, execute, { env });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
