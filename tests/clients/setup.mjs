// The clients under test, installed at fixed versions below .tools/clients/, which git ignores. A second call finds
// them there.
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run, step } from "../tools/setup.mjs";
import { NODE, PYTHON } from "./programs.mjs";

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

/** The name of a client's test program, with its route where it is another than chat completions. */
const nameOf = (title, language, { route }) => `${title} for ${language}${route ? `, ${route}` : ""}`;

/** What the tests of a client are told of it. */
const told = ({ tests, ...client }) => ({ CLIENT: JSON.stringify(client) });

/** The Python of a folder of requirements, installed once, and the text of its requirements. */
function pythonOf(venv) {
  const requirements = join(here, "python", `requirements-${venv}.txt`);
  const pins = readFileSync(requirements, "utf8");
  const folder = join(home, `python-${venv}`);
  const program = join(folder, ...(windows ? ["Scripts", "python.exe"] : ["bin", "python"]));
  makeOnce(folder, pins, program, `installing openai ${venv} for Python and what goes with it`, () => {
    run(process.env.PYTHON ?? (windows ? "python" : "python3"), ["-m", "venv", folder]);
    run(program, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
  });
  return { program, pins };
}

function pythonClient(client) {
  const { program, pins } = pythonOf(client.venv);
  const version = versionIn(pins, new RegExp(`^${client.package}==(\\S+)`, "m"));
  const tests = client.tests.map((name) => join(here, "python", `test_${name}.py`));
  return {
    name: nameOf(`${client.package} ${version}`, "Python", client),
    program,
    args: ["-B", "-m", "pytest", "-p", "no:cacheprovider", "--disable-warnings", ...tests],
    // LiteLLM would ask the network for prices otherwise.
    env: { ...told({ ...client, version }), LITELLM_LOCAL_MODEL_COST_MAP: "True" },
  };
}

/** Installs the packages once, and gives a module that imports them, which a test's own imports would not find. */
function nodePackages() {
  const folder = join(home, "node");
  const files = ["package.json", "package-lock.json"];
  const inputs = files.map((file) => readFileSync(join(here, "node", file), "utf8")).join("");
  const loader = join(folder, "load.mjs");
  makeOnce(folder, inputs, loader, "installing the clients for Node.js", () => {
    for (const file of files) copyFileSync(join(here, "node", file), join(folder, file));
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
    writeFileSync(loader, "export const load = (name) => import(name);\n");
  });
  return { loader, sources: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).dependencies };
}

function nodeClients(node) {
  const { loader, sources } = nodePackages();
  /** The name and version behind a name of ours, which may stand for another. */
  const titleOf = (alias) => {
    const [, name, version] = sources[alias].match(/^(?:npm:(.+)@)?([^@]+)$/);
    return `${name ?? alias} ${version}`;
  };
  return NODE.map((client) => {
    const provider = client.provider ? ` with ${titleOf(client.provider)}` : "";
    const tests = client.tests.map((name) => join(here, "node", `${name}.test.mjs`));
    return {
      name: nameOf(`${titleOf(client.package)}${provider}`, "Node.js", client),
      program: node,
      // The files wait rather than work.
      args: ["--test", "--test-reporter=spec", `--test-concurrency=${tests.length}`, ...tests],
      env: { ...told(client), PACKAGES: loader },
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
  return [...nodeClients(node), ...PYTHON.map(pythonClient), rust()];
}
