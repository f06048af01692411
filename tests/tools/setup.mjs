// Installs what building and running needs: npm packages, the wasm target, and the two programs that turn Rust into a
// Worker. Everything goes into folders of this project that git ignores; a second call finds it all there.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const tools = join(root, ".tools");
const modules = join(root, "node_modules");

// worker-build's version follows the `worker` crate, wasm-bindgen's has to equal the crate's: both from Cargo.lock.
const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
const locked = (name) => lock.match(new RegExp(`name = "${name}"\\nversion = "([^"]+)"`))[1];

export function step(message) {
  console.error(`\x1b[1m› ${message}\x1b[0m`);
}

/** Runs a program in the project's folder, showing what it prints; stops this one if it fails. */
export function run(program, args, options = {}) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit", ...options });
  if (error) throw new Error(`${program} could not be started: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function version(program) {
  try {
    return execFileSync(program, ["--version"], { encoding: "utf8" }).trim().split(/\s+/).at(-1);
  } catch {
    return undefined;
  }
}

function installNpmPackages() {
  const stamp = join(modules, ".package-lock.json");
  const wanted = statSync(join(root, "package-lock.json")).mtimeMs;
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= wanted) return;
  step("installing npm packages (half a minute)");
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
}

function installWasmTarget() {
  const sysroot = execFileSync("rustc", ["--print", "sysroot"], { cwd: root, encoding: "utf8" }).trim();
  if (existsSync(join(sysroot, "lib", "rustlib", "wasm32-unknown-unknown"))) return;
  step("installing Rust's wasm32 target");
  run("rustup", ["target", "add", "wasm32-unknown-unknown"]);
}

function installProgram(crate, program, wanted) {
  const path = join(tools, "bin", program);
  if (version(path) !== wanted) {
    step(`building ${crate} ${wanted} (once; a few minutes)`);
    run("cargo", ["install", crate, "--version", wanted, "--locked", "--root", tools, "--quiet"]);
  }
  return path;
}

/** Does all set-up and returns the programs' paths. */
export function setUp() {
  installNpmPackages();
  installWasmTarget();
  return {
    workerBuild: installProgram("worker-build", "worker-build", locked("worker")),
    wasmBindgen: process.env.WASM_BINDGEN_BIN ?? installProgram("wasm-bindgen-cli", "wasm-bindgen", locked("wasm-bindgen")),
    node: join(modules, "node", "bin", "node"),
    wrangler: join(modules, "wrangler", "bin", "wrangler.js"),
  };
}
