// Real clients against the real Worker on this machine:
//   node tests/clients/run.mjs            all of them
//   node tests/clients/run.mjs Python     those with this in their name
import { spawn } from "node:child_process";
import { once } from "node:events";
import { build } from "../tools/build.mjs";
import { attempt, fail, root, setUp, step } from "../tools/setup.mjs";
import { setUpClients } from "./setup.mjs";

/** Most of their time is waiting, so a few go side by side; each one's output is shown in one piece when it ends. */
const AT_ONCE = 5;

const CLIENTS_OWN = /^(OPENAI|ANTHROPIC|AI|LANGCHAIN|LANGSMITH|LITELLM)_/;

/** Our environment without what would send a client elsewhere: its own variables, and a proxy for this machine. */
function environmentWith(more) {
  const own = Object.entries(process.env).filter(([name]) => !CLIENTS_OWN.test(name));
  return { ...Object.fromEntries(own), NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1", ...more };
}

/** Runs a client's test program, shows what it printed, and tells whether it passed. */
async function passes({ name, program, args, env }, environment) {
  const child = spawn(program, args, { cwd: root, env: environmentWith({ ...environment, ...env }) });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => output.push(part));
  const [code] = await once(child, "close");
  step(`${name} against the local proxy`);
  process.stdout.write(Buffer.concat(output));
  return code === 0;
}

/** Runs all clients and returns the names of those that failed. */
async function runAll(clients) {
  // What it needs is there only after the set-up.
  const { startProxy } = await import("./proxy.mjs");
  const proxy = await startProxy();
  const [queue, failed] = [[...clients], []];
  const lane = async () => {
    for (let client = queue.shift(); client; client = queue.shift()) {
      if (!(await passes(client, proxy.environment))) failed.push(client.name);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  } finally {
    await proxy.stop();
  }
  return failed;
}

const programs = setUp();
if (Number(process.versions.node.split(".")[0]) < 22) {
  // The test runtime and one of the clients need the Node.js that the set-up brings.
  process.exit(attempt(programs.node, process.argv.slice(1)));
}
build(programs);
const wanted = process.argv[2] ?? "";
const clients = setUpClients(programs).filter(({ name }) => name.includes(wanted));
if (clients.length === 0) fail(`no client has "${wanted}" in its name`);
step(`running ${clients.length} clients`);
const failed = await runAll(clients);
if (failed.length > 0) fail(`failed: ${failed.join("; ")}`);
step(`passed: ${clients.map(({ name }) => name).join("; ")}`);
