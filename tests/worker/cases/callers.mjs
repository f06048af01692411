// Who calls in a case: `u-alpha`, `u-beta`, or `visitor:` and an address.
import { CALLERS } from "./policy.mjs";
import { headersOf } from "./sending.mjs";

const CREDENTIALS = /^(authorization|x-api-key|api-key)$/i;

/** A caller by name: the key or the address, and the plan. */
export function who(name) {
  if (name?.startsWith("visitor:")) return { address: name.slice("visitor:".length), plan: "visitor" };
  return CALLERS[name];
}

/** The user whose key is the request's one credential, or the visitor who sends none. */
export function callerOf(request) {
  const headers = headersOf(request);
  const credentials = headers.filter(([name]) => CREDENTIALS.test(name));
  const address = headers.find(([name]) => name.toLowerCase() === "cf-connecting-ip")?.[1];
  if (credentials.length === 0) return address && !request.visitor_token ? `visitor:${address}` : undefined;
  const names = (user) => credentials.some(([, value]) => value.includes(CALLERS[user].key));
  const users = Object.keys(CALLERS).filter(names);
  return users.length === 1 ? users[0] : undefined;
}
