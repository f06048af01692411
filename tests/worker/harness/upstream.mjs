// A model provider on loopback that does what a script says and writes down what it saw.
import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSealedServer } from "node:https";
import { join } from "node:path";
import { OK, play, scriptOf } from "./script.mjs";

export { OK, bytesOf, scriptOf, textOf } from "./script.mjs";

/** A certificate that nobody has signed but itself, and its key, which guards nothing. */
const SELF_SIGNED = join(import.meta.dirname, "self_signed.pem");

/**
 * Starts one. It answers every call with `answerWith`'s last script, whatever the path; one that is `sealed` speaks TLS,
 * with a certificate that nobody trusts.
 */
export async function startUpstream({ sealed = false } = {}) {
  const upstream = new Upstream(sealed);
  await upstream.listen();
  return upstream;
}

class Upstream extends EventEmitter {
  /** The calls that arrived, oldest first. */
  calls = [];
  #server;
  #port = 0;
  #script = OK;
  #hooks = {};
  #tag;
  #resets = 0;
  #sealed;

  constructor(sealed) {
    super();
    this.#sealed = sealed;
  }

  get origin() {
    return `${this.#sealed ? "https" : "http"}://127.0.0.1:${this.#port}`;
  }

  /**
   * From now on plays `script` (as cases describe it, or "ok", or a function of the call that returns one) to every
   * call; a `sequence` gives its scripts one after the other. `tag` is written on the calls that arrive under it.
   */
  async answerWith(script, { hooks = {}, tag } = {}) {
    const list = (script.sequence ?? [script]).map((one) => (typeof one === "function" ? one : scriptOf(one)));
    [this.#script, this.#hooks, this.#tag] = [list.at(-1), hooks, tag];
    const first = list.findIndex(({ behaviour }) => behaviour !== "connection-refused");
    // Nobody hears of a refused connection, so one of a sequence is a connection that is reset when it is made.
    this.#resets = Math.max(first, 0);
    if (first === -1) await this.close();
    else await this.listen();
  }

  async listen() {
    if (this.#server?.listening) return;
    const arrived = (request, response) => this.#arrived(request, response);
    const pem = this.#sealed ? readFileSync(SELF_SIGNED) : undefined;
    this.#server = this.#sealed
      ? createSealedServer({ key: pem, cert: pem }, arrived)
      : createServer({ keepAliveTimeout: 0 }, arrived);
    this.#server.on("connection", (socket) => {
      if (this.#resets > 0) {
        this.#resets -= 1;
        socket.resetAndDestroy();
      }
    });
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = this.#server.address().port;
  }

  async close() {
    if (!this.#server?.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** The next call that arrives. */
  async nextCall() {
    return (await once(this, "call"))[0];
  }

  async #arrived(request, response) {
    const [script, hooks] = [this.#script, this.#hooks];
    const call = {
      tag: this.#tag,
      method: request.method,
      path: request.url.split("?")[0],
      url: request.url,
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      body: null,
      /** Resolves to the moment at which the caller gave up, or to null once it has the whole answer. */
      cancelled: new Promise((resolve) => {
        response.once("close", () => resolve(response.writableFinished ? null : performance.now()));
      }),
    };
    const pieces = [];
    try {
      for await (const piece of request) pieces.push(piece);
    } catch {
      return;
    }
    call.body = Buffer.concat(pieces);
    this.calls.push(call);
    this.emit("call", call);
    try {
      await play(typeof script === "function" ? scriptOf(script(call)) : script, response, hooks);
    } catch (fault) {
      // What the script waited for did not come: whoever runs it finds the reason here.
      this.fault = fault;
      response.destroy();
    }
  }
}
