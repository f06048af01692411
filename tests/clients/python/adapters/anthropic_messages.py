"""Anthropic's own package, by messages."""

import anthropic
from support import BASE_URL, Habits, Told

from .common import PICTURE, TOOL, Answer, Asked, Awaiting, Blocking

# Anthropic's API takes no call without a cap.
CAP = 64
# The words of the other adapters for why an answer ends.
FINISHES = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def messages_for(asked):
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE.split(",")[1]}
    content = [{"type": "text", "text": asked.prompt}, {"type": "image", "source": source}]
    return [{"role": "user", "content": content if asked.image else asked.prompt}]


def request_for(asked, messages=None):
    request = {
        # Models of an upstream that speaks Anthropic's API have names of their own here.
        "model": f"claude-{asked.model}",
        "max_tokens": CAP if asked.cap is None else asked.cap,
        "messages": messages or messages_for(asked),
    }
    if asked.tools:
        tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
        request["tools"] = [tool]
    return request


def answer_of(message, pieces=0):
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    usage = (message.usage.input_tokens, message.usage.output_tokens)
    return Answer(text, FINISHES[message.stop_reason], usage, calls, raw=message, pieces=pieces)


class Messages:
    """What a program does with ``whole`` and ``pieces``; ``snapshot`` is the answer that the last stream came to."""

    snapshot = None

    def chat(self, **given):
        return answer_of(self.whole(request_for(Asked(**given))))

    def stream(self, **given):
        events = self.pieces(request_for(Asked(**given)), stream=True)
        return answer_of(self.snapshot, sum(event.type == "content_block_delta" for event in events))

    def give_back(self, answer, text, **given):
        asked = Asked(tools=True, **given)
        [call] = answer.raw.content
        result = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        said = {"role": "assistant", "content": [call.model_dump(exclude_none=True)]}
        messages = [*messages_for(asked), said, {"role": "user", "content": [result]}]
        return answer_of(self.whole(request_for(asked, messages)))


def options(key, retries):
    # It adds `/v1` itself.
    base_url = BASE_URL.removesuffix("/v1")
    return {"base_url": base_url, "api_key": key, **({} if retries is None else {"max_retries": retries})}


class BlockingClient(Messages, Blocking):
    def __init__(self, key, retries=None):
        self._client = anthropic.Anthropic(**options(key, retries))

    def send(self, request, stream=False):
        return self._events(request) if stream else self._client.messages.create(**request)

    def _events(self, request):
        with self._client.messages.stream(**request) as stream:
            yield from stream
            self.snapshot = stream.get_final_message()


class AwaitingClient(Messages, Awaiting):
    def __init__(self, key, retries=None):
        self._client = anthropic.AsyncAnthropic(**options(key, retries))

    def send(self, request, stream=False):
        return self._events(request) if stream else self._client.messages.create(**request)

    async def _events(self, request):
        async with self._client.messages.stream(**request) as stream:
            async for event in stream:
                yield event
            self.snapshot = await stream.get_final_message()


CALLERS = {"Anthropic": BlockingClient, "AsyncAnthropic": AwaitingClient}
ERRORS = {
    "wrong key": anthropic.AuthenticationError,
    "unknown model": anthropic.NotFoundError,
    "bad request": anthropic.BadRequestError,
    "too long": anthropic.BadRequestError,
    "refused": anthropic.RateLimitError,
    "failed": anthropic.InternalServerError,
    "broken plain": anthropic.InternalServerError,
    "broken stream": anthropic.APIStatusError,
}
TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
HABITS = Habits(
    asks_for_usage=True,
    type_of=lambda status, _: TYPES.get(status, "api_error"),
    upstream_has_codes=False,
)


def told(error):
    """The type is Anthropic's; what Tollgate says beyond that stands beside it."""
    body = error.body["error"]
    return Told(error.status_code, error.message, body["type"], body["code"], body["param"])
