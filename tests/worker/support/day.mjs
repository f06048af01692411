// The Worker with a day's ledger: the database, visitors, and what they are known by.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "../harness/client.mjs";
import { LEDGER } from "../harness/worker.mjs";
import { CHAT, DAY, Gate, NOON } from "./gate.mjs";

export const VISITOR_SECRET = "a secret of visitors, long enough";
export const TODAY = Math.floor(NOON / DAY);
/** What a retry of a batch waits for. */
export const RETRY = 30_000;

const edge = join(import.meta.dirname, "..", "..", "..", "src", "edge");
/** The text of one of the product's own statements. */
export const statement = (name) => readFileSync(join(edge, "sql", `${name}.sql`), "utf8");

/** Starts the Worker with a ledger, and a secret for visitors; a variable that is undefined is left out. */
export function startDay({ env, bindings, ...policy }) {
  const variables = Object.entries({ VISITOR_SECRET, ...env }).filter(([, value]) => value !== undefined);
  return Gate.start({ ...policy, env: Object.fromEntries(variables), bindings: { LEDGER, ...bindings } });
}

/** The same for as long as `act` takes. */
export async function withDay(policy, act) {
  const gate = await startDay(policy);
  try {
    return await act(gate);
  } finally {
    await gate.stop();
  }
}

const hashOf = (secret, ...parts) => createHmac("sha256", secret).update(`${parts.join("\0")}\0`).digest("hex");

/** The subject of an address on a day, as whoever has the secret can compute it. */
export function visitorOf(prefix, day = TODAY, secret = VISITOR_SECRET) {
  return `visitor:${hashOf(secret, "subject", day, prefix).slice(0, 32)}`;
}

/** What the number in a token is called on a day. */
export const memberOf = (number, day = TODAY) => hashOf(VISITOR_SECRET, "member", day, number).slice(0, 16);

/** A chat completion of a visitor, to be sent by the raw client. */
export function visit(gate, address, { headers = [], body = {} } = {}) {
  const messages = [{ role: "user", content: "Name three rivers." }];
  const whole = { model: "alpha", messages, max_tokens: 100, ...body };
  const own = address === null ? [] : [["cf-connecting-ip", address]];
  return gate.request(null, { method: "POST", path: CHAT, headers: [...own, ...headers], body: whole });
}

/** Sends `calls` requests one after the other on one connection; each is made by `requestOf(number)`. */
export async function sequence(gate, calls, requestOf, onReply = () => {}) {
  const connection = await open(gate.worker.url);
  const replies = [];
  for (let number = 0; number < calls; number += 1) {
    const reply = await connection.send(requestOf(number));
    replies.push(reply);
    await onReply(reply, number);
  }
  connection.close();
  return replies;
}

/** How many replies have which status. */
export function statuses(replies) {
  const counts = {};
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** All rows of the ledger by `day/key`. */
export async function ledgerOf(gate) {
  const rows = await gate.worker.sql("SELECT * FROM ledger ORDER BY day, key");
  return Object.fromEntries(rows.map((row) => [`${row.day}/${row.key}`, row]));
}

export const rowOf = async (gate, key, day = TODAY) => (await ledgerOf(gate))[`${day}/${key}`];

/** Waits until an object's record shows no open hold, and lets its alarm tell the ledger all that is due. */
export async function posted(gate, subject) {
  const open = async () => {
    const { values } = await gate.worker.object(subject).stored();
    return Object.values(values).some((value) => JSON.parse(value).holds.some((hold) => !hold.recorded?.expired));
  };
  const until = performance.now() + 5_000;
  while (await open()) {
    if (performance.now() > until) throw new Error(`${subject}: a hold stays open`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await gate.worker.advance(RETRY);
  await gate.worker.object(subject).alarm();
}
