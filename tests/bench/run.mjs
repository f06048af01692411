// Size, cold start, CPU per call and rows per call of the build in build/, over real workerd:
//   node tests/bench/run.mjs
// prints the tables and writes them into RESULTS.md beside this file. The first run also makes the builds that the
// shipped one is compared with (a few minutes); a later one takes about three. Close what else keeps the machine busy.
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { build } from "../tools/build.mjs";
import { root, setUp, step } from "../tools/setup.mjs";
import { builds, sizeOf } from "./builds.mjs";
import { measureCalls } from "./calls.mjs";
import { measureCold } from "./cold.mjs";
import { countCosts } from "./costs.mjs";
import { report } from "./report.mjs";
import { bare, tollgate } from "./workers.mjs";

const here = join(root, "tests", "bench");

async function measure(made, upstream) {
  step("counting rows and object requests");
  const costs = await countCosts(made.shipped.path, upstream);
  step("starting processes");
  const cold = await measureCold({
    bare: bare(upstream),
    shipped: tollgate(made.shipped.path, upstream),
    none: tollgate(made.none.path, upstream),
  });
  step("CPU per call (two minutes)");
  return { costs, cold, ...(await measureCalls(made, upstream)) };
}

const programs = setUp();
build(programs);
const made = builds(programs);
const sizes = Object.values(made).map(({ says, path }) => ({ says, ...sizeOf(path) }));
const upstream = fork(join(here, "upstream.mjs"));
try {
  const [origin] = await once(upstream, "message");
  const [load] = loadavg();
  const figures = await measure(made, origin);
  const page = report({ sizes, load, ...figures });
  writeFileSync(join(here, "RESULTS.md"), page);
  console.log(page);
} finally {
  upstream.disconnect();
}
