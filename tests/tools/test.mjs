// `npm test`: everything that has to hold before a change is taken over, the cheapest first; it stops at what fails.
//   npm test                  all of it
//   npm test -- rust worker   only these parts
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "./build.mjs";
import { attempt, fail, root, setUp, step } from "./setup.mjs";

/** The most that the Worker's wasm may weigh after compression; what makes it heavier should be worth it. */
const WASM_GZIP_MAX = 1_900_000;

const succeeds = (program, args, options) => attempt(program, args, options) === 0;
const cargo = (args, env = {}) => succeeds("cargo", args, { env: { ...process.env, ...env } });

const kibibytes = (bytes) => `${(bytes / 1_024).toFixed(1)} KiB`;

function isSmallEnough() {
  const wasm = readFileSync(join(root, "build", "index_bg.wasm"));
  const packed = gzipSync(wasm, { level: 9 }).length;
  const most = kibibytes(WASM_GZIP_MAX);
  console.error(`wasm: ${kibibytes(wasm.length)}, ${kibibytes(packed)} after gzip (at most ${most})`);
  return packed <= WASM_GZIP_MAX;
}

/** The parts by name; each step has a title and tells whether it passed. */
function parts(programs) {
  const { node, wrangler } = programs;
  // The bound is far above what any test takes: it is there so that one that hangs is named.
  const nodeTests = (pattern) =>
    succeeds(node, ["--test", "--test-reporter=spec", "--test-timeout=300000", pattern]);
  const clientsInRust = join("tests", "clients", "rust", "Cargo.toml");
  return {
    rust: {
      "Rust is formatted": () => cargo(["fmt", "--check"]),
      "Rust in tests/clients is formatted": () => cargo(["fmt", "--check", "--manifest-path", clientsInRust]),
      "no lint on the host": () => cargo(["lint"]),
      "no lint on wasm32": () => cargo(["lint-wasm"]),
      "tests of the rules": () => cargo(["test", "--locked"]),
      "the documentation has no faults": () => cargo(["doc", "--no-deps", "--locked"], { RUSTDOCFLAGS: "-D warnings" }),
    },
    build: {
      "the Worker builds": () => (build(programs), true),
      "the Worker is small": isSmallEnough,
      "it can be deployed (dry run)": () => succeeds(node, [wrangler, "deploy", "--dry-run"]),
    },
    worker: {
      "tests of the Worker": () => (build(programs), nodeTests("tests/worker/**/*.test.mjs")),
    },
    start: {
      "npm start, npm run usage and npm run prices": () => (build(programs), nodeTests("tests/tools/*.test.mjs")),
    },
    clients: {
      "the official clients": () => succeeds(node, ["tests/clients/run.mjs"]),
    },
  };
}

function check(title, passes) {
  step(title);
  const began = performance.now();
  if (!passes()) fail(`failed: ${title}`);
  step(`${title}: passed in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
}

const all = parts(setUp());
const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !Object.hasOwn(all, name));
if (unknown) fail(`there is no part "${unknown}", want ${Object.keys(all).join(", ")}`);
for (const name of wanted.length > 0 ? wanted : Object.keys(all)) {
  for (const [title, passes] of Object.entries(all[name])) check(title, passes);
}
step("everything passed");
