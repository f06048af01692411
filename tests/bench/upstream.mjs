// The model provider of the benchmark, in a process of its own so that its CPU is not Tollgate's. The model's name says
// what it does: `plain` answers whole, `fast` and `slow` stream, `hang` takes the request and never answers.
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

export const STREAMS = {
  fast: { chunks: 500, every: 0 },
  slow: { chunks: 100, every: 5 },
};
const CHUNK_BYTES = 200;
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const HEAD = { id: "c-1", created: 1_930_478_400, model: "m" };

const PLAIN = JSON.stringify({
  ...HEAD,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "Volga, Niger, Loire." }, finish_reason: "stop" }],
  usage: USAGE,
});

function event(choices, more = {}) {
  return `data: ${JSON.stringify({ ...HEAD, object: "chat.completion.chunk", choices, ...more })}\n\n`;
}

function chunk() {
  const of = (content) => event([{ index: 0, delta: { content }, finish_reason: null }]);
  return of("x".repeat(CHUNK_BYTES - of("").length));
}

const CHUNK = chunk();
const END = [event([{ index: 0, delta: {}, finish_reason: "stop" }]), event([], { usage: USAGE }), "data: [DONE]\n\n"];

async function stream(response, { chunks, every }) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let sent = 0; sent < chunks; sent += 1) {
    // Written means handed to the socket, so that every chunk travels by itself.
    await new Promise((written) => response.write(CHUNK, written));
    if (every > 0) await wait(every);
  }
  response.end(END.join(""));
}

async function answer(request, response) {
  let body = "";
  for await (const part of request.setEncoding("utf8")) body += body === "" ? part : "";
  const [, model] = /"model":"(\w+)"/.exec(body) ?? [];
  if (model === "hang") return;
  if (STREAMS[model]) await stream(response, STREAMS[model]);
  else response.writeHead(200, { "content-type": "application/json", "content-length": PLAIN.length }).end(PLAIN);
}

if (process.send) {
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1", () => process.send(`http://127.0.0.1:${server.address().port}`));
  process.on("disconnect", () => process.exit());
}
