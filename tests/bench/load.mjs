// A client with a bounded number of kept connections.
import { Agent, request as open } from "node:http";

export class Load {
  #agent;
  #origin;

  constructor(origin, connections = 16) {
    this.#origin = origin;
    this.connections = connections;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  close() {
    this.#agent.destroy();
  }

  /** Makes `calls` calls, at most as many at a time as there are connections. `call(n)` describes the n-th. */
  async run(calls, call) {
    let next = 0;
    const caller = async () => {
      while (next < calls) await this.call(call(next++));
    };
    await Promise.all(Array.from({ length: Math.min(calls, this.connections) }, caller));
  }

  /** One call; an answer with another status than `want` ends the benchmark, since its figures would mean nothing. */
  async call({ method = "POST", path = "/v1/chat/completions", headers, body, want = 200 }) {
    const { status, text } = await this.#send(method, path, headers, body);
    if (status !== want) throw new Error(`${method} ${path}: got ${status}, want ${want}: ${text.slice(0, 400)}`);
    return text;
  }

  #send(method, path, headers, body) {
    return new Promise((resolve, reject) => {
      const sized = body === undefined ? headers : { ...headers, "content-length": Buffer.byteLength(body) };
      const call = open(new URL(path, this.#origin), { method, headers: sized, agent: this.#agent }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part) => (text += part));
        answer.on("end", () => resolve({ status: answer.statusCode, text }));
        answer.on("error", reject);
      });
      call.on("error", reject);
      call.end(body);
    });
  }
}
