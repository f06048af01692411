// Installs what building and running needs: npm packages, the Rust toolchain, and the two programs that turn Rust into
// a Worker. Everything of npm's and cargo's goes into folders of this project that git ignores; a second call finds it
// all there and takes a fraction of a second.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const tools = join(root, ".tools");
const modules = join(root, "node_modules");
const windows = process.platform === "win32";

export function step(message) {
  const bold = process.stderr.isTTY ? ["\x1b[1m", "\x1b[0m"] : ["", ""];
  console.error(`${bold[0]}› ${message}${bold[1]}`);
}

/** Ends this program with one line that says what is wrong and what to do. */
export function fail(message) {
  console.error(`✗ ${message}`);
  process.exit(1);
}

/** Runs a program in the project's folder, showing what it prints, and returns its exit code. */
export function attempt(program, args, options = {}) {
  // npm is a script on Windows, and scripts need a shell there.
  const { status, signal, error } = spawnSync(program, args, {
    cwd: root,
    stdio: "inherit",
    shell: windows && program === "npm",
    ...options,
  });
  if (error) fail(`${program} could not be started: ${error.message}`);
  if (signal) fail(`${program} was ended by ${signal}`);
  return status;
}

/** The same, for what has to succeed. */
export function run(program, args, options = {}) {
  const status = attempt(program, args, options);
  if (status !== 0) fail(`${[program, ...args].join(" ")} failed with exit code ${status}`);
}

function output(program, args) {
  try {
    return execFileSync(program, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

function installNpmPackages() {
  const stamp = join(modules, ".package-lock.json");
  const wanted = statSync(join(root, "package-lock.json")).mtimeMs;
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= wanted) return;
  step("installing npm packages (half a minute)");
  // Said explicitly, because NODE_ENV=production and a person's own npm settings would leave them out.
  run("npm", ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"]);
}

/** The Node.js that wrangler needs comes as a package, so that npm may run on an older one. */
function nodeProgram() {
  const own = join(modules, "node", "bin", windows ? "node.exe" : "node");
  if (output(own, ["--version"])) return own;
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 12)) return process.execPath;
  return fail(
    "Node.js 22.12 or later is needed, and the one in node_modules was not set up. " +
      "Either npm was told not to run install scripts (`npm rebuild node esbuild workerd` makes up for it), " +
      "or there is none for this machine: then install Node.js 22.",
  );
}

/** rust-toolchain.toml names the version, the wasm target and the components; rustup reads it by itself. */
function installRust() {
  const complete = () => {
    const sysroot = output("rustc", ["--print", "sysroot"]);
    const parts = ["lib/rustlib/wasm32-unknown-unknown", "bin/cargo-clippy", "bin/rustfmt"];
    const present = (part) => existsSync(join(sysroot, part)) || existsSync(join(sysroot, `${part}.exe`));
    return sysroot !== undefined && parts.every(present);
  };
  if (complete()) return;
  const rustup = output("rustup", ["--version"]);
  if (!rustup) fail("Rust is needed: install rustup as https://rustup.rs says, then try again");
  step("installing the Rust toolchain of rust-toolchain.toml (a minute)");
  run("rustup", ["toolchain", "install", "--no-self-update"]);
  if (!complete()) fail("the Rust toolchain lacks rustfmt, clippy or the wasm32 target; see rust-toolchain.toml");
}

/** The version of a crate in Cargo.lock. */
function locked(crate) {
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  return lock.match(new RegExp(`name = "${crate}"\\r?\\nversion = "([^"]+)"`))[1];
}

function installProgram(crate, program, wanted) {
  const path = join(tools, "bin", windows ? `${program}.exe` : program);
  if (output(path, ["--version"])?.split(/\s+/).at(-1) !== wanted) {
    step(`building ${crate} ${wanted} (once; a few minutes)`);
    // Built in a folder that stays until it is done, so that an interrupted build goes on where it was.
    const target = join(tools, "target");
    run("cargo", ["install", crate, "--version", wanted, "--locked", "--root", tools, "--target-dir", target], {
      // A third less to wait for; what these programs do takes a fraction of a second either way.
      env: { ...process.env, CARGO_PROFILE_RELEASE_OPT_LEVEL: "1" },
    });
    rmSync(target, { recursive: true, force: true });
  }
  return path;
}

/** Sets up what wrangler alone needs and returns the programs' paths. */
export function setUpWrangler() {
  installNpmPackages();
  return { node: nodeProgram(), wrangler: join(modules, "wrangler", "bin", "wrangler.js") };
}

/** Does all set-up and returns the programs' paths. */
export function setUp() {
  const programs = setUpWrangler();
  installRust();
  return {
    ...programs,
    // worker-build's version follows the `worker` crate, wasm-bindgen's has to equal the crate's.
    workerBuild: process.env.WORKER_BUILD_BIN ?? installProgram("worker-build", "worker-build", locked("worker")),
    wasmBindgen:
      process.env.WASM_BINDGEN_BIN ?? installProgram("wasm-bindgen-cli", "wasm-bindgen", locked("wasm-bindgen")),
  };
}
