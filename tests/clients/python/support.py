"""What every test of the openai package needs: the two ways to call it, fresh keys, and what the proxy saw."""

import asyncio
import json
import os
import urllib.parse
import urllib.request

import openai

BASE_URL = os.environ["BASE_URL"]
DESK_URL = os.environ["DESK_URL"]

HELLO = [{"role": "user", "content": "hi there"}]
ANSWER = "You said: hi there"
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}, "days": {"type": "integer"}}},
    },
}
TOOL_ARGUMENTS = {"town": "example", "days": 1}


def _desk(path, **given):
    with urllib.request.urlopen(f"{DESK_URL}/{path}?{urllib.parse.urlencode(given)}") as answer:
        return json.load(answer)


def fresh_key(plan):
    """A key of a caller who has not called yet."""
    return _desk("key", plan=plan)["key"]


def tries(key):
    """What the proxy saw of a key, oldest first."""
    return _desk("tries", key=key)


def statuses(key):
    return [seen["status"] for seen in tries(key)]


class Blocking:
    """The package's `OpenAI`."""

    def __init__(self, key, **options):
        self._client = openai.OpenAI(base_url=BASE_URL, api_key=key, **options)

    def chat(self, model="demo", messages=HELLO, **given):
        return self._client.chat.completions.create(model=model, messages=messages, **given)

    def stream(self, model="demo", messages=HELLO, **given):
        """The chunks of a streamed answer; what goes wrong in the middle is raised with `seen` chunks before it."""
        seen = []
        try:
            for chunk in self._client.chat.completions.create(model=model, messages=messages, stream=True, **given):
                seen.append(chunk)
        except openai.APIError as error:
            error.seen = seen
            raise
        return seen

    def raw(self, **given):
        """The answer with its headers."""
        return self._client.chat.completions.with_raw_response.create(model="demo", messages=HELLO, **given)

    def models(self):
        return [model.id for model in self._client.models.list()]


class Awaiting:
    """The package's `AsyncOpenAI`, each call in an event loop of its own."""

    def __init__(self, key, **options):
        self._options = {"base_url": BASE_URL, "api_key": key, **options}

    def _run(self, use):
        async def run():
            async with openai.AsyncOpenAI(**self._options) as client:
                return await use(client)

        return asyncio.run(run())

    def chat(self, model="demo", messages=HELLO, **given):
        return self._run(lambda client: client.chat.completions.create(model=model, messages=messages, **given))

    def stream(self, model="demo", messages=HELLO, **given):
        async def read(client):
            seen = []
            try:
                answer = await client.chat.completions.create(model=model, messages=messages, stream=True, **given)
                async for chunk in answer:
                    seen.append(chunk)
            except openai.APIError as error:
                error.seen = seen
                raise
            return seen

        return self._run(read)

    def raw(self, **given):
        return self._run(
            lambda client: client.chat.completions.with_raw_response.create(model="demo", messages=HELLO, **given)
        )

    def models(self):
        async def read(client):
            return [model.id async for model in client.models.list()]

        return self._run(read)
