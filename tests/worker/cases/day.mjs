// The day of a case: what of it is used before the first call, what of it a call has used, and tokens of visitors.
import { visitorOf } from "../support/day.mjs";
import { numberFault } from "./match.mjs";
import { VISITOR_SECRET } from "./policy.mjs";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const FILL = `INSERT INTO ledger (day, key, calls) VALUES (?1, ?2, ?3)
  ON CONFLICT (day, key) DO UPDATE SET calls = excluded.calls`;

const today = (worker) => Math.floor(worker.now / DAY_MS);

/** The one spelling of an address's network. */
function prefixOf(address) {
  if (!address.includes(":")) return address;
  const [head, tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [before, after] = [head, tail].map((part) => (part ? part.split(":") : []));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}

const keyOf = (address, day) => visitorOf(prefixOf(address), day, VISITOR_SECRET);

/** Brings about `day_counts` and `site_calls`. */
export async function fillDay(worker, { day_counts: counts = [], site_calls: site }) {
  for (const { visitor, calls, day } of counts) {
    const number = day ? Date.parse(`${day}T00:00:00Z`) / DAY_MS : today(worker);
    await worker.sql(FILL, number, keyOf(visitor, number), calls);
  }
  if (site !== undefined) await worker.sql(FILL, today(worker), "*", site);
}

/** Admitted calls by row, on the day of the Worker's clock. */
export async function dayOf(worker) {
  const rows = await worker.sql("SELECT key, calls FROM ledger WHERE day = ?1", today(worker));
  return Object.fromEntries(rows.map(({ key, calls }) => [key, calls]));
}

/** What is wrong with the change in admitted calls since the sending began. */
export async function dayCountFaults(expected, sending, stage) {
  const after = await dayOf(stage.worker);
  return Object.entries(expected).map(([name, change]) => {
    const address = (name === "visitor" ? stage.caller : name).replace("visitor:", "");
    const key = name === "site" ? "*" : keyOf(address, today(stage.worker));
    return numberFault(`day_count of ${name}`, change, (after[key] ?? 0) - (sending.day[key] ?? 0), stage.values);
  });
}

/** A token of the product's own mint that is not good any more. */
export async function tokenFor(worker, { of, state }) {
  const now = worker.now;
  if (state === "expired") await worker.setClock(now - WEEK_MS - 1);
  const reply = await worker.fetch("/v1/visitor", { method: "POST", headers: { "cf-connecting-ip": of } });
  if (reply.status !== 200) throw new Error(`no visitor token was given out: ${await reply.text()}`);
  await worker.setClock(now);
  const { token } = await reply.json();
  if (state === "expired") return token;
  if (state !== "tampered") throw new Error(`visitor_token: unknown state ${state}`);
  const last = (Number.parseInt(token.at(-1), 16) ^ 1).toString(16);
  return token.slice(0, -1) + last;
}
