// The build as it is shipped, and others of the same sources to compare it with. They are made in a folder of their own
// below target/, so build/ stays as it is, and made again only if the sources have changed.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { root, run, step } from "../tools/setup.mjs";

const folder = join(root, "target", "bench");
const sources = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo", "src", join("tests", "vocabulary")];

/** What is built besides: cargo's arguments and its environment. */
const OTHERS = {
  none: { says: "without vocabularies", args: ["--no-default-features"] },
  o200k: { says: "`o200k` only", args: ["--no-default-features", "--features", "o200k"] },
  cl100k: { says: "`cl100k` only", args: ["--no-default-features", "--features", "cl100k"] },
  small: { says: "as shipped, but `opt-level = \"s\"`", args: [], env: { CARGO_PROFILE_RELEASE_OPT_LEVEL: "s" } },
};

const bin = (name) => join(root, "node_modules", ".bin", process.platform === "win32" ? `${name}.cmd` : name);

/** Every build: its name, what it is, its folder. The shipped one has to be there already. */
export function builds({ workerBuild, wasmBindgen }) {
  // Copied, so that a build that is made meanwhile does not come in halves.
  const shipped = { says: "as shipped", path: join(folder, "shipped") };
  rmSync(shipped.path, { recursive: true, force: true });
  cpSync(join(root, "build"), shipped.path, { recursive: true });
  const stamp = readFileSync(join(shipped.path, "inputs.sha256"), "utf8");
  const programs = { WASM_BINDGEN_BIN: wasmBindgen, ESBUILD_BIN: bin("esbuild"), WASM_OPT_BIN: bin("wasm-opt") };
  const env = { ...process.env, ...programs };
  let copy;
  const others = Object.entries(OTHERS).map(([name, other]) => {
    const path = join(folder, name);
    if (!isOf(path, stamp)) {
      step(`building ${name} (a minute at most)`);
      copy ??= copySources();
      build(workerBuild, other.args, { cwd: copy, env: { ...env, ...other.env } });
      rmSync(path, { recursive: true, force: true });
      cpSync(join(copy, "build"), path, { recursive: true });
      writeFileSync(join(path, "inputs.sha256"), stamp);
    }
    return [name, { says: other.says, path }];
  });
  return Object.fromEntries([["shipped", shipped], ...others]);
}

function isOf(path, stamp) {
  const own = join(path, "inputs.sha256");
  return existsSync(own) && readFileSync(own, "utf8") === stamp;
}

function copySources() {
  const copy = join(folder, "sources");
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(join(copy, "tests"), { recursive: true });
  for (const source of sources) cpSync(join(root, source), join(copy, source), { recursive: true });
  return copy;
}

function build(workerBuild, args, { cwd, env }) {
  const target = { CARGO_TARGET_DIR: join(folder, "cargo") };
  run(workerBuild, ["--release", ".", "--locked", ...args], { cwd, env: { ...env, ...target } });
}

/** Bytes of a build's wasm, as it is and compressed. */
export function sizeOf(path) {
  const wasm = join(path, "index_bg.wasm");
  return { raw: statSync(wasm).size, gzip: gzipSync(readFileSync(wasm), { level: 9 }).length };
}
