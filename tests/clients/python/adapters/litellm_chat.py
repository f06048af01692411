"""LiteLLM as a client of an OpenAI-compatible address."""

import litellm
from support import BASE_URL, Habits, Told

from .common import Awaiting, Blocking, Vectors
from .openai_chat import Chat

# It would print advice for every error that is expected here.
litellm.suppress_debug_info = True


class Options:
    def __init__(self, key, retries=None):
        self._options = {"api_base": BASE_URL, "api_key": key}
        if retries is not None:
            self._options["max_retries"] = retries

    def arguments(self, request, more):
        return {**self._options, **request, "model": f"openai/{request['model']}", **more}


    def embedding(self, texts, model, given):
        # It would not send dimensions to a model that it does not know.
        allowed = {"allowed_openai_params": ["dimensions"]}
        return {**self._options, **allowed, "model": f"openai/{model}", "input": texts, **given}


def vectors_of(answer):
    return Vectors([item["embedding"] for item in answer.data], answer.usage.prompt_tokens)


class BlockingCall(Chat, Options, Blocking):
    def send(self, request, **more):
        return litellm.completion(**self.arguments(request, more))

    def embed(self, texts, model="demo", **given):
        return vectors_of(litellm.embedding(**self.embedding(texts, model, given)))


class AwaitingCall(Chat, Options, Awaiting):
    async def send(self, request, **more):
        return await litellm.acompletion(**self.arguments(request, more))

    def embed(self, texts, model="demo", **given):
        return vectors_of(self.wait_for(litellm.aembedding(**self.embedding(texts, model, given))))


CALLERS = {"completion": BlockingCall, "acompletion": AwaitingCall}
ERRORS = {
    "wrong key": litellm.AuthenticationError,
    "unknown model": litellm.NotFoundError,
    "bad request": litellm.BadRequestError,
    "too long": litellm.ContextWindowExceededError,
    "refused": litellm.RateLimitError,
    "failed": litellm.BadGatewayError,
    "broken plain": litellm.BadGatewayError,
    "broken stream": litellm.exceptions.MidStreamFallbackError,
}
# Of other errors it keeps the message only.
HABITS = Habits(tells=frozenset({"bad request", "refused"}))


def told(error):
    """Its own type and code are not the provider's; those are in the body."""
    body = error.body or {}
    return Told(error.status_code, error.message, body.get("type"), body.get("code"), body.get("param"))
