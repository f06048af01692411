// Which clients there are, by how their test programs are started: an adapter that calls a package, and the tests that
// are run over it.

/** What a conversation has to show, over whichever route. */
const CONVERSATION = ["chat", "errors", "waits"];

/** By the folder of requirements that a package is installed from. */
export const PYTHON = [
  { venv: "3", package: "openai", adapter: "openai_chat", tests: [...CONVERSATION, "openai"] },
  { venv: "2", package: "openai", adapter: "openai_chat", tests: [...CONVERSATION, "openai"] },
  { venv: "1", package: "openai", adapter: "openai_chat", tests: [...CONVERSATION, "openai"] },
  { venv: "2", package: "langchain-openai", adapter: "langchain", tests: CONVERSATION },
  { venv: "2", package: "litellm", adapter: "litellm_chat", tests: CONVERSATION },
];

const aiSdk = (major, kind) => ({
  package: `ai-${major}`,
  provider: `ai-${major}-${kind}`,
  adapter: "ai-sdk",
  kind,
  // Version 6 hands on what came in the stream, version 7 makes an error of it.
  brokenStream: major === 6 ? "Object" : "AI_StreamProviderError",
  tests: CONVERSATION,
});

/** By the packages' names in package.json. */
export const NODE = [
  { package: "openai", adapter: "openai", tests: [...CONVERSATION, "openai"] },
  { package: "openai-6", adapter: "openai", tests: [...CONVERSATION, "openai"] },
  aiSdk(7, "openai"),
  aiSdk(7, "compatible"),
  aiSdk(6, "openai"),
  aiSdk(6, "compatible"),
  { package: "@langchain/openai", adapter: "langchain", tests: CONVERSATION },
];
