// Comparing a number or a text with what a case expects of it. Each check answers with what is wrong, or nothing.
import { evaluate, isExpression } from "./expression.mjs";

const MATCHERS = new Set(["regex", "not_regex", "absent", "min", "max", "or_absent"]);

/** A number, a range `{min, max}`, or an expression. Amounts of money may have a thousandth as their smallest part. */
export function numberFault(what, expected, actual, values) {
  const shown = `${what} is ${actual}, expected ${JSON.stringify(expected)}`;
  const near = (wanted) => Math.abs(actual - wanted) < 0.0005;
  if (typeof actual !== "number" || Number.isNaN(actual)) return shown;
  if (typeof expected !== "object") {
    const wanted = evaluate(expected, values);
    return near(wanted) ? undefined : `${shown} = ${wanted}`;
  }
  const { min, max } = expected;
  const least = min === undefined ? -Infinity : evaluate(min, values);
  const most = max === undefined ? Infinity : evaluate(max, values);
  if (actual < least - 0.0005) return `${shown}, at least ${least}`;
  if (actual > most + 0.0005) return `${shown}, at most ${most}`;
  return undefined;
}

/** A text (undefined if there is none) against an exact value, an expression or a matcher. */
export function textFault(what, expected, actual, values) {
  const fault = `${what} is ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`;
  if (typeof expected !== "object" || expected === null) {
    const wanted = isExpression(expected) ? String(evaluate(expected, values)) : expected;
    return actual === wanted ? undefined : `${fault} = ${wanted}`;
  }
  const unknown = Object.keys(expected).filter((name) => !MATCHERS.has(name));
  if (unknown.length > 0) throw new Error(`matcher: unknown ${unknown}`);
  if (actual === undefined || actual === null) return expected.absent || expected.or_absent ? undefined : fault;
  if (expected.absent) return fault;
  if (expected.regex && !regex(expected.regex).test(actual)) return fault;
  if (expected.not_regex && regex(expected.not_regex).test(actual)) return fault;
  const { min, max } = expected;
  if (min !== undefined || max !== undefined) return numberFault(what, { min, max }, Number(actual), values);
  return undefined;
}

function regex(text) {
  return text.startsWith("(?i)") ? new RegExp(text.slice(4), "i") : new RegExp(text);
}

/** The value at a JSON pointer. */
export function pointed(tree, pointer) {
  const names = pointer.split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce((value, name) => value?.[name], tree);
}

/** A member that nobody acts on must not pass in silence. */
export function unknown(what, object, known) {
  const names = Object.keys(object).filter((name) => !known.has(name));
  if (names.length > 0) throw new Error(`${what}: unknown ${names.join(", ")}`);
}
