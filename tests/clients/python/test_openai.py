"""What the openai package itself promises beyond an answer: headers, request ids, models, and its oldest route."""

import asyncio

import openai
import pytest
from support import BASE_URL, fresh_key, tries

HELLO = [{"role": "user", "content": "hi there"}]


def blocking(key, use):
    with openai.OpenAI(base_url=BASE_URL, api_key=key) as client:
        return use(client)


def awaiting(key, use):
    async def run():
        async with openai.AsyncOpenAI(base_url=BASE_URL, api_key=key) as client:
            return await use(client)

    return asyncio.run(run())


WAYS = pytest.mark.parametrize("run", [blocking, awaiting], ids=["OpenAI", "AsyncOpenAI"])


@WAYS
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_the_rate_headers_and_the_request_id_are_within_reach(run, stream):
    def ask(client):
        return client.chat.completions.with_raw_response.create(model="demo", messages=HELLO, stream=stream)

    key = fresh_key("roomy")
    headers = run(key, ask).headers
    assert headers["x-ratelimit-limit-requests"] == "1000"
    assert headers["x-ratelimit-limit-tokens"] == "1000000"
    assert int(headers["x-ratelimit-remaining-tokens"]) < 1_000_000
    assert headers["ratelimit-policy"].startswith('"requests";q=1000;w=1')
    assert headers["x-request-id"] == tries(key)[-1]["requestId"]


@WAYS
def test_the_request_id_is_an_attribute_of_the_answer_and_of_an_error(run):
    key = fresh_key("roomy")
    answer = run(key, lambda client: client.chat.completions.create(model="demo", messages=HELLO))
    assert answer._request_id == tries(key)[-1]["requestId"]
    with pytest.raises(openai.NotFoundError) as caught:
        run(key, lambda client: client.chat.completions.create(model="nonesuch", messages=HELLO))
    assert caught.value.request_id
    assert caught.value.request_id == tries(key)[-1]["requestId"]


def test_the_models_are_listed():
    key = fresh_key("roomy")

    async def names(client):
        return [model.id async for model in client.models.list()]

    assert "demo" in blocking(key, lambda client: [model.id for model in client.models.list()])
    assert "demo" in awaiting(key, names)


@WAYS
@pytest.mark.parametrize("asked", [None, {"include_usage": True}], ids=["not asked", "asked"])
def test_a_completion_of_the_older_kind(run, asked):
    def pieces(client):
        return client.completions.create(model="demo", prompt="hi there", stream=True, stream_options=asked)

    async def read(client):
        return [piece async for piece in await pieces(client)]

    answer = run(fresh_key("roomy"), lambda client: client.completions.create(model="demo", prompt="hi there"))
    assert (answer.choices[0].text, answer.usage.total_tokens) == ("You said: hi there", 6)
    chunks = run(fresh_key("roomy"), read if run is awaiting else lambda client: list(pieces(client)))
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == "You said: hi there"
    assert [len(chunk.choices) for chunk in chunks].count(0) == (1 if asked else 0)
    assert getattr(chunks[-1].usage, "total_tokens", None) == (6 if asked else None)
