// Which class of error a program meets, what is in it, and that nobody comes again in vain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chat, connect, freshKey, openai, statuses, stream, tries } from "./support.mjs";

const { APIError, AuthenticationError, BadRequestError, InternalServerError, NotFoundError, RateLimitError } = openai;

/** The error that a call ends with, which has to be of exactly this class. */
async function thrown(expected, call) {
  const error = await call.then(
    () => assert.fail("nothing was thrown"),
    (caught) => caught,
  );
  assert.equal(error.constructor.name, expected.name, error.stack);
  assert.ok(error instanceof expected);
  return error;
}

const told = ({ type, code, param }) => [type, code, param];

test("a wrong key is an AuthenticationError", async () => {
  const wrong = `${await freshKey("roomy")}x`;
  const error = await thrown(AuthenticationError, chat(connect(wrong)));
  assert.equal(error.status, 401);
  assert.deepEqual(told(error), ["invalid_request_error", "invalid_api_key", null]);
  assert.ok(!error.message.includes(wrong));
  assert.deepEqual(await statuses(wrong), [401]);
});

test("an unknown model is a NotFoundError", async () => {
  const key = await freshKey("roomy");
  const error = await thrown(NotFoundError, chat(connect(key), { model: "nonesuch" }));
  assert.deepEqual(told(error), ["invalid_request_error", "model_not_found", "model"]);
  assert.match(error.message, /nonesuch/);
  assert.deepEqual(await statuses(key), [404]);
});

test("a bad request is a BadRequestError that names the field", async () => {
  const key = await freshKey("roomy");
  const error = await thrown(BadRequestError, chat(connect(key), { max_tokens: 0 }));
  assert.deepEqual(told(error), ["invalid_request_error", "invalid_request", "max_tokens"]);
  assert.deepEqual(await statuses(key), [400]);
});

test("what the upstream refuses is a BadRequestError in its words", async () => {
  const key = await freshKey("roomy");
  const error = await thrown(BadRequestError, chat(connect(key), { model: "refusing" }));
  assert.deepEqual(told(error), ["invalid_request_error", "400", null]);
  assert.match(error.message, /maximum context length/);
  assert.deepEqual(await statuses(key), [400]);
});

test("a call that can never fit is a BadRequestError and not tried again", async () => {
  const key = await freshKey("small");
  const error = await thrown(BadRequestError, chat(connect(key), { max_tokens: 1_000 }));
  assert.deepEqual(told(error), ["invalid_request_error", "request_exceeds_limit", null]);
  assert.deepEqual(await statuses(key), [400]);
});

test("a refusal is a RateLimitError with type and code", async () => {
  const client = connect(await freshKey("long"));
  await chat(client);
  const error = await thrown(RateLimitError, chat(client));
  assert.deepEqual(told(error), ["requests", "rate_limit_exceeded", null]);
  assert.match(error.message, /Please try again in/);
  assert.equal(error.headers.get("x-tollgate-limited-by"), "calls");
});

test("the upstream's own refusal is told apart", async () => {
  const client = connect(await freshKey("roomy"), { maxRetries: 0 });
  const error = await thrown(RateLimitError, chat(client, { model: "demo-busy" }));
  assert.deepEqual(told(error), ["requests", "rate_limit_exceeded", null]);
  assert.equal(error.headers.get("x-tollgate-limited-by"), "upstream");
  assert.equal(error.headers.get("retry-after"), "2");
});

test("an upstream failure is an InternalServerError and free however often it is tried", async () => {
  const key = await freshKey("daily");
  const error = await thrown(InternalServerError, chat(connect(key), { model: "demo-fail" }));
  assert.equal(error.status, 502);
  assert.deepEqual(told(error), ["server_error", "upstream_failed", null]);
  // One call a day, and it is still there.
  await chat(connect(key));
  assert.deepEqual(await statuses(key), [502, 502, 502, 200]);
});

test("a plain answer that breaks off is an InternalServerError", async () => {
  const client = connect(await freshKey("roomy"), { maxRetries: 0 });
  const error = await thrown(InternalServerError, chat(client, { model: "demo-break" }));
  assert.deepEqual(told(error), ["server_error", "upstream_invalid", null]);
});

test("a stream that breaks off is an error after what had come", async () => {
  const key = await freshKey("roomy");
  const error = await thrown(APIError, stream(connect(key), { model: "demo-break" }));
  assert.deepEqual(told(error), ["server_error", "upstream_invalid", null]);
  assert.match(error.message, /incomplete/);
  assert.ok(error.seen.length > 1);
  assert.deepEqual(await statuses(key), [200]);
});

test("the request id is an attribute of every error", async () => {
  const key = await freshKey("roomy");
  const error = await thrown(NotFoundError, chat(connect(key), { model: "nonesuch" }));
  assert.ok(error.requestID);
  assert.equal(error.requestID, (await tries(key)).at(-1).requestId);
});
