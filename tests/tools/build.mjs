// Builds the Worker into build/: the `[build]` command of wrangler.toml.
import { join } from "node:path";
import { root, run, setUp } from "./setup.mjs";

const { workerBuild, wasmBindgen } = setUp();
const bin = (name) => join(root, "node_modules", ".bin", name);
run(workerBuild, ["--release"], {
  env: {
    ...process.env,
    WASM_BINDGEN_BIN: wasmBindgen,
    ESBUILD_BIN: process.env.ESBUILD_BIN ?? bin("esbuild"),
    WASM_OPT_BIN: process.env.WASM_OPT_BIN ?? bin("wasm-opt"),
  },
});
