// Builds the Worker into build/: the `[build]` command of wrangler.toml, and a step of the two npm commands. It does
// nothing if build/ was made of the very same files.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { root, run, setUp, step } from "./setup.mjs";

const made = join(root, "build", "index.js");
const stamp = join(root, "build", "inputs.sha256");

/** Everything that the result depends on; the programs that build it have their versions in the two lock files. */
function inputs() {
  const files = ["Cargo.toml", "Cargo.lock", "package-lock.json", "rust-toolchain.toml", ".cargo/config.toml"];
  const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const hash = createHash("sha256");
  for (const path of [...files.map((file) => join(root, file)), ...sources.sort(), fileURLToPath(import.meta.url)]) {
    hash.update(`${relative(root, path)}\0`).update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex");
}

/** Builds the Worker if it is not there already. */
export function build({ workerBuild, wasmBindgen }) {
  const wanted = inputs();
  if (existsSync(made) && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  step("building the Worker (a minute or two the first time)");
  const bin = (name) => join(root, "node_modules", ".bin", process.platform === "win32" ? `${name}.cmd` : name);
  rmSync(stamp, { force: true });
  run(workerBuild, ["--release", ".", "--locked"], {
    env: {
      ...process.env,
      // Its own call stack would bury the compiler's message.
      RUST_LIB_BACKTRACE: "0",
      WASM_BINDGEN_BIN: wasmBindgen,
      ESBUILD_BIN: process.env.ESBUILD_BIN ?? bin("esbuild"),
      WASM_OPT_BIN: process.env.WASM_OPT_BIN ?? bin("wasm-opt"),
    },
  });
  writeFileSync(stamp, wanted);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) build(setUp());
