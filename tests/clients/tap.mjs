// What passes between the clients and the proxy, seen from outside: every byte is handed on as it came, and of each
// request and the head of its answer a note is kept. So a test can say how often a client really came, and when.
import { once } from "node:events";
import { connect, createServer } from "node:net";

const HEAD_END = "\r\n\r\n";
const REQUEST = /^[A-Z]+ \S+ HTTP\/1\.1\r\n/;

function headOf(text) {
  const [first, ...lines] = text.split("\r\n");
  const headers = lines.map((line) => line.split(/:\s*/, 1).concat(line.slice(line.indexOf(":") + 1).trim()));
  return { first, headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])) };
}

/** Gathers chunks until a head is whole; what does not begin like one is the rest of a body. */
class HeadReader {
  #text = "";

  /** The head that `chunk` completes, or undefined. */
  push(chunk, beginning) {
    this.#text += chunk.toString("latin1");
    const end = this.#text.indexOf(HEAD_END);
    if (end === -1 && (beginning.test(this.#text) || this.#text.length < 16)) return undefined;
    const head = beginning.test(this.#text) ? headOf(this.#text.slice(0, end)) : undefined;
    this.#text = "";
    return head;
  }
}

/** One connection. None of the clients sends a request before the last one is answered. */
function watch(client, server, tries) {
  const [requests, answers] = [new HeadReader(), new HeadReader()];
  let open;
  client.on("data", (chunk) => {
    if (!open) {
      const head = requests.push(chunk, REQUEST);
      if (head) tries.push((open = tryOf(head)));
    }
    server.write(chunk);
  });
  server.on("data", (chunk) => {
    const head = open && answers.push(chunk, /^HTTP\/1\.1 \d/);
    if (head) {
      note(open, head);
      open = undefined;
    }
    client.write(chunk);
  });
}

function tryOf({ first, headers }) {
  const [method, path] = first.split(" ");
  const key = headers.authorization?.replace(/^bearer /i, "") ?? headers["x-api-key"];
  return { key, method, path, at: Date.now(), retryCount: headers["x-stainless-retry-count"] ?? null };
}

function note(seen, { first, headers }) {
  const number = (name) => (name in headers ? Number(headers[name]) : null);
  Object.assign(seen, {
    status: Number(first.split(" ")[1]),
    answeredAt: Date.now(),
    requestId: headers["x-request-id"] ?? null,
    retryAfter: number("retry-after"),
    retryAfterMs: number("retry-after-ms"),
    shouldRetry: headers["x-should-retry"] ?? null,
    limitedBy: headers["x-tollgate-limited-by"] ?? null,
  });
}

/** The end of one side, clean or not, becomes the same end of the other. */
function bind(from, to) {
  from.on("end", () => to.end());
  from.on("error", () => to.resetAndDestroy());
  from.on("close", () => to.destroySoon());
}

/** Stands in front of `target`, an origin, on a free port. */
export async function startTap(target) {
  const { hostname, port } = new URL(target);
  const tries = [];
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true });
    watch(client, upstream, tries);
    bind(client, upstream);
    bind(upstream, client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    /** The tries that came with a key, oldest first. */
    triesOf: (key) => tries.filter((seen) => seen.key === key),
    stop: () => new Promise((stopped) => server.close(stopped)),
  };
}
