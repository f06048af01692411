// What the system says of a process.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";

/**
 * The CPU that a process has used, user and system, in microseconds: of all its threads, or of the main one, which runs
 * everything but V8's compiling and collecting in the background.
 */
export function cpuOf(pid, { mainOnly = false } = {}) {
  const tasks = `/proc/${pid}/task`;
  if (existsSync(`${tasks}/${pid}/schedstat`)) {
    const used = (task) => Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
    const counted = mainOnly ? [pid] : readdirSync(tasks);
    return counted.reduce((sum, task) => sum + used(task), 0) / 1_000;
  }
  // Elsewhere in hundredths of a second, which is coarse for the shortest of the rounds.
  const parts = ps(pid, "time=").split(/[-:]/).map(Number);
  return parts.reduce((sum, part) => sum * 60 + part, 0) * 1_000_000;
}

/** Its resident memory in megabytes. */
export const memoryOf = (pid) => (Number(ps(pid, "rss=")) * 1_024) / 1_000_000;

function ps(pid, field) {
  return execFileSync("ps", ["-o", field, "-p", String(pid)], { encoding: "utf8" }).trim();
}
