"""The openai package, by responses."""

import json

import openai
from support import Habits

from .common import PICTURE, TOOL, Answer, Asked, Awaiting, Blocking
from .openai_chat import ERRORS, options, told

__all__ = ["ERRORS", "told"]


def items(asked):
    picture = {"type": "input_image", "image_url": PICTURE, "detail": "auto"}
    content = [{"type": "input_text", "text": asked.prompt}, picture] if asked.image else asked.prompt
    return [{"role": "user", "content": content}]


def request_for(asked, given=None):
    request = {"model": asked.model, "input": given or items(asked)}
    if asked.tools:
        request["tools"] = [{"type": "function", "strict": False, **TOOL}]
    if asked.cap is not None:
        request["max_output_tokens"] = asked.cap
    return request


def answer_of(response):
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    finish = "length" if response.status == "incomplete" else "tool_calls" if calls else "stop"
    usage = (response.usage.input_tokens, response.usage.output_tokens)
    text = "".join(part.text for item in response.output if item.type == "message" for part in item.content)
    return Answer(text, finish, usage, calls, raw=response)


def gathered(events):
    """The answer that the last event holds, which the pieces before it have to come to."""
    *before, last = events
    answer = answer_of(last.response)
    deltas = [event.delta for event in before if event.type.endswith(".delta")]
    assert "".join(deltas) == (answer.text or answer.raw.output[0].arguments)
    answer.pieces = len(deltas)
    return answer


class Responses:
    """What a program does with ``whole`` and ``pieces``."""

    def chat(self, **given):
        return answer_of(self.whole(request_for(Asked(**given))))

    def stream(self, **given):
        return gathered(self.pieces(request_for(Asked(**given)), stream=True))

    def give_back(self, answer, text, **given):
        asked = Asked(tools=True, **given)
        [call] = answer.raw.output
        result = {"type": "function_call_output", "call_id": call.call_id, "output": text}
        given = [*items(asked), call.model_dump(exclude_none=True), result]
        return answer_of(self.whole(request_for(asked, given)))


class BlockingClient(Responses, Blocking):
    def __init__(self, key, retries=None):
        self._client = openai.OpenAI(**options(key, retries))

    def send(self, request, **more):
        return self._client.responses.create(**request, **more)


class AwaitingClient(Responses, Awaiting):
    def __init__(self, key, retries=None):
        self._client = openai.AsyncOpenAI(**options(key, retries))

    async def send(self, request, **more):
        return await self._client.responses.create(**request, **more)


CALLERS = {"OpenAI": BlockingClient, "AsyncOpenAI": AwaitingClient}
HABITS = Habits(bad_field="max_output_tokens", asks_for_usage=True)
