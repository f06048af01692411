"""The openai package, by chat completions."""

import json

import openai
from support import BASE_URL, Told

from .common import TOOL, Answer, Asked, Awaiting, Blocking, Vectors, chat_messages


def request_for(asked, messages=None):
    request = {"model": asked.model, "messages": messages or chat_messages(asked)}
    if asked.tools:
        request["tools"] = [{"type": "function", "function": TOOL}]
    if asked.cap is not None:
        request["max_tokens"] = asked.cap
    if asked.usage is not None:
        request["stream_options"] = {"include_usage": asked.usage}
    return request


def pair_of(usage):
    return (usage.prompt_tokens, usage.completion_tokens) if usage else None


def answer_of(completion):
    [choice] = completion.choices
    calls = [
        (call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []
    ]
    text = choice.message.content or ""
    return Answer(text, choice.finish_reason, pair_of(completion.usage), calls, raw=choice.message)


def gathered(chunks, usage_is_asked):
    """An answer out of its chunks, as ordinary programs put it together."""
    answer, calls = Answer(), {}
    for chunk in chunks:
        answer.usage = pair_of(getattr(chunk, "usage", None)) or answer.usage
        # Who has asked for usage has to expect a chunk without choices; nobody else has to.
        if usage_is_asked and not chunk.choices:
            continue
        choice = chunk.choices[0]
        answer.text += choice.delta.content or ""
        answer.finish = choice.finish_reason or answer.finish
        for part in choice.delta.tool_calls or []:
            name, arguments = calls.get(part.index, (part.function.name, ""))
            calls[part.index] = (name, arguments + part.function.arguments)
        answer.pieces += bool(choice.delta.content or choice.delta.tool_calls)
    answer.calls = [(name, json.loads(arguments)) for name, arguments in calls.values()]
    return answer


class Chat:
    """What a program does with ``whole`` and ``pieces``."""

    def chat(self, **given):
        return answer_of(self.whole(request_for(Asked(**given))))

    def stream(self, **given):
        asked = Asked(**given)
        return gathered(self.pieces(request_for(asked), stream=True), asked.usage)

    def give_back(self, answer, text, **given):
        asked = Asked(tools=True, **given)
        result = {"role": "tool", "tool_call_id": answer.raw.tool_calls[0].id, "content": text}
        messages = [*chat_messages(asked), answer.raw.model_dump(exclude_none=True), result]
        return answer_of(self.whole(request_for(asked, messages)))


def vectors_of(answer):
    return Vectors([item.embedding for item in answer.data], answer.usage.prompt_tokens)


def options(key, retries):
    return {"base_url": BASE_URL, "api_key": key, **({} if retries is None else {"max_retries": retries})}


class BlockingClient(Chat, Blocking):
    def __init__(self, key, retries=None):
        self._client = openai.OpenAI(**options(key, retries))

    def send(self, request, **more):
        return self._client.chat.completions.create(**request, **more)

    def embed(self, texts, model="demo", **given):
        return vectors_of(self._client.embeddings.create(input=texts, model=model, **given))


class AwaitingClient(Chat, Awaiting):
    def __init__(self, key, retries=None):
        self._client = openai.AsyncOpenAI(**options(key, retries))

    async def send(self, request, **more):
        return await self._client.chat.completions.create(**request, **more)

    def embed(self, texts, model="demo", **given):
        return vectors_of(self.wait_for(self._client.embeddings.create(input=texts, model=model, **given)))


CALLERS = {"OpenAI": BlockingClient, "AsyncOpenAI": AwaitingClient}
ERRORS = {
    "wrong key": openai.AuthenticationError,
    "unknown model": openai.NotFoundError,
    "bad request": openai.BadRequestError,
    "too long": openai.BadRequestError,
    "refused": openai.RateLimitError,
    "failed": openai.InternalServerError,
    "broken plain": openai.InternalServerError,
    "broken stream": openai.APIError,
}


def told(error):
    status = getattr(error, "status_code", None)
    return Told(status, error.message, error.type, error.code, error.param)
