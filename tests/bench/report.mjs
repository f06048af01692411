// Figures as a page of Markdown.
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { join } from "node:path";
import { root } from "../tools/setup.mjs";
import { CALLERS } from "./workers.mjs";

const fixed = (digits) => (value) => value.toFixed(digits);
const whole = (value) => Math.round(value).toLocaleString("en-US");
const times = (value) => `${value.toFixed(1)} ×`;

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, place) => (place === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}

function versions() {
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  const crate = (name) => new RegExp(`name = "${name}"\\r?\\nversion = "([^"]+)"`).exec(lock)[1];
  const workerd = JSON.parse(readFileSync(join(root, "node_modules", "workerd", "package.json"), "utf8")).version;
  const crates = ["worker", "wasm-bindgen"].map((name) => `${name} ${crate(name)}`);
  return [`workerd ${workerd}`, ...crates, `Node.js ${process.versions.node}`].join(", ");
}

function sizeTable(list) {
  const kb = (bytes) => whole(bytes / 1_000);
  return table(["build", "wasm, KB", "gzip -9, KB"], list.map(({ says, raw, gzip }) => [says, kb(raw), kb(gzip)]));
}

function coldTable({ bare, shipped, none }) {
  const row = (says, { firstAnswer, firstCall, firstPrompt, laterPrompt, memory }) => [
    says, whole(firstAnswer), fixed(1)(firstCall), fixed(1)(firstPrompt), fixed(2)(laterPrompt), whole(memory),
  ];
  return table(
    ["Worker", "first answer, ms", "first call, CPU ms", "first 10 KB prompt, CPU ms", "later ones", "memory, MB"],
    [row("bare pass-through", bare), row("as shipped", shipped), row("without vocabularies", none)],
  );
}

function callTable([admitted, ...others]) {
  const bare = admitted.plain;
  const own = [admitted, ...others].map(({ name, gate }) => [name, gate]);
  const rows = [["bare pass-through Worker", bare], ...own];
  return table(["call", "CPU, µs", "to bare"], rows.map(([name, cpu]) => [name, whole(cpu), times(cpu / bare)]));
}

function promptTable(list) {
  return table(
    ["prompt", "bare, CPU µs", "by its bytes", "counted exactly", "counting alone"],
    list.map(({ size, plain, bytes, gate }) => [`${whole(size)} B`, ...[plain, bytes, gate, gate - bytes].map(whole)]),
  );
}

const paceOf = (every) => (every === 0 ? "as fast as they go" : `one every ${every} ms`);
const saysOf = ({ chunks, every }) => `${chunks} chunks, ${paceOf(every)}`;

function streamTable(list) {
  const row = ({ plain, gate, ...stream }) => [
    saysOf(stream),
    ...[plain, gate].map((cpu) => fixed(1)(cpu / 1_000)),
    times(gate / plain),
    ...[plain, gate - plain].map((cpu) => fixed(1)(cpu / stream.chunks)),
  ];
  const head = ["stream", "bare, CPU ms", "Tollgate", "to bare", "bare, µs per chunk", "added, µs per chunk"];
  return table(head, list.map(row));
}

/** The same work by the shipped build, which is at level 3, and by the one at level `s`. */
function levelTable({ calls, prompts, streams }) {
  const rows = [
    ...calls,
    ...prompts.map((prompt) => ({ name: `prompt of ${whole(prompt.size)} B`, ...prompt })),
    ...streams.map((stream) => ({ name: saysOf(stream), ...stream })),
  ];
  const row = ({ name, gate, small }) => [name, whole(gate), whole(small), (small / gate).toFixed(2)];
  return table(["", "`3` as shipped, CPU µs", "`\"s\"`", "`\"s\"` to `3`"], rows.map(row));
}

function costTable(list) {
  return table(
    ["call", "object requests", "rows: record", "rows: alarm"],
    list.map(({ name, requests, puts, alarms }) => [name, ...[requests, puts, alarms].map(fixed(2))]),
  );
}

/** The whole page. */
export function report({ sizes, load, cold, costs, ...measured }) {
  const day = new Date().toISOString().slice(0, 10);
  const machine = `${availableParallelism()} cores (${cpus()[0].model.trim()})`;
  const loads = `load average ${fixed(1)(load)} before and ${fixed(1)(loadavg()[0])} after`;
  return `# Benchmark

Written by \`node tests/bench/run.mjs\` on ${day}: ${versions()};
${machine}, ${loads}.

Trust the ratios. CPU is what the whole workerd process uses, user and system, all threads: parsing HTTP, sockets and
the log line are in it, so a provider bills less. A figure is the median of rounds in which the contestants take turns,
over 16 kept connections on loopback. The objects' storage is in memory where the system has such a disk.

## Size

${sizeTable(sizes)}

KB is 1,000 bytes. The platform's limit is 64 MiB, not compressed.

## Start

A new process: how long until it has answered, and what calls cost after that, one at a time. CPU is here that of the main
thread, without V8's compiling in the background. English prompts; medians of nine starts.

${coldTable(cold)}

## CPU per call

The upstream answers at once. ${CALLERS} callers take turns, so that each makes about a call a second; five limits each.

${callTable(measured.calls)}

## Prompts

Plain calls with English prompts. "By its bytes" is \`counting.method = "bytes"\`.

${promptTable(measured.prompts)}

## Streams

Chunks of 200 B, one event each.

${streamTable(measured.streams)}

## \`opt-level\`

${levelTable(measured)}

## What a call costs at the objects

Counted between the Worker and its objects, and between an object and its storage: a put of the record and an alarm that
is set are one written row each.

${costTable(costs)}
`;
}
