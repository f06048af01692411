// The clients under test, installed at fixed versions below .tools/clients/, which git ignores. A second call finds
// them there.
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run, step } from "../tools/setup.mjs";

const here = import.meta.dirname;
const home = join(root, ".tools", "clients");
const windows = process.platform === "win32";

/** Makes a folder anew with `make`, unless it was made of the same `inputs` and `result` in it is still there. */
function makeOnce(folder, inputs, result, message, make) {
  const stamp = join(folder, "inputs.txt");
  if (existsSync(result) && existsSync(stamp) && readFileSync(stamp, "utf8") === inputs) return;
  step(message);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  make();
  writeFileSync(stamp, inputs);
}

const versionIn = (text, pattern) => text.match(pattern)[1];

function python(major) {
  const requirements = join(here, "python", `requirements-${major}.txt`);
  const pins = readFileSync(requirements, "utf8");
  const version = versionIn(pins, /^openai==(\S+)/m);
  const name = `openai ${version} for Python`;
  const folder = join(home, `python-${major}`);
  const program = join(folder, ...(windows ? ["Scripts", "python.exe"] : ["bin", "python"]));
  makeOnce(folder, pins, program, `installing ${name}`, () => {
    run(process.env.PYTHON ?? (windows ? "python" : "python3"), ["-m", "venv", folder]);
    run(program, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
  });
  return {
    name,
    program,
    args: ["-B", "-m", "pytest", "-p", "no:cacheprovider", join(here, "python")],
    env: { CLIENT_VERSION: version },
  };
}

function nodeClients(node) {
  const folder = join(home, "node");
  const files = ["package.json", "package-lock.json"];
  const inputs = files.map((file) => readFileSync(join(here, "node", file), "utf8")).join("");
  makeOnce(folder, inputs, join(folder, "node_modules"), "installing openai for Node.js", () => {
    for (const file of files) copyFileSync(join(here, "node", file), join(folder, file));
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
  });
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return Object.entries(dependencies).sort().reverse().map(([alias, source]) => {
    // A module beside node_modules, since a test cannot import from there by the package's name.
    const module = join(folder, `${alias}.mjs`);
    writeFileSync(module, `export * from "${alias}";\nexport { default } from "${alias}";\n`);
    const tests = ["chat", "errors", "waits"].map((file) => join(here, "node", `${file}.test.mjs`));
    return {
      name: `openai ${versionIn(source, /@([^@]+)$/)} for Node.js`,
      program: node,
      args: ["--test", "--test-reporter=spec", ...tests],
      env: { CLIENT_MODULE: module },
    };
  });
}

function rust() {
  const manifest = join(here, "rust", "Cargo.toml");
  const lock = readFileSync(join(here, "rust", "Cargo.lock"), "utf8");
  const version = versionIn(lock, /name = "async-openai"\r?\nversion = "([^"]+)"/);
  const target = join(home, "rust");
  const args = ["test", "--lib", "--locked", "--manifest-path", manifest, "--target-dir", target];
  if (!existsSync(target)) step(`building the tests of async-openai ${version} (a minute)`);
  run("cargo", [...args, "--no-run", "--quiet"]);
  return { name: `async-openai ${version} for Rust`, program: "cargo", args: [...args, "--quiet"], env: {} };
}

/** Installs what is not there yet, and tells how each client's test program is started. */
export function setUpClients({ node }) {
  return [...["3", "2", "1"].map(python), ...nodeClients(node), rust()];
}
