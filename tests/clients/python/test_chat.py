"""What a call that is let through looks like from inside a program."""

import json

from support import ANSWER, TOOL, TOOL_ARGUMENTS, fresh_key, statuses, tries


def text_of(chunks):
    # Ordinary programs write exactly this, and a chunk without choices would end them.
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_a_plain_chat_arrives_with_its_usage(connect):
    answer = connect(fresh_key("roomy")).chat()
    assert answer.choices[0].message.content == ANSWER
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (2, 4, 6)


def test_a_stream_without_asking_for_usage_has_no_chunk_without_choices(connect):
    key = fresh_key("roomy")
    chunks = connect(key).stream()
    assert text_of(chunks) == ANSWER
    assert len(chunks) > 3
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert statuses(key) == [200]


def test_declining_usage_is_not_asking_for_it(connect):
    chunks = connect(fresh_key("roomy")).stream(stream_options={"include_usage": False})
    assert text_of(chunks) == ANSWER
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_that_asks_for_usage_gets_it_in_the_last_chunk(connect):
    *chunks, last = connect(fresh_key("roomy")).stream(stream_options={"include_usage": True})
    assert text_of(chunks) == ANSWER
    assert last.choices == []
    assert (last.usage.prompt_tokens, last.usage.completion_tokens, last.usage.total_tokens) == (2, 4, 6)


def test_a_tool_call_arrives_whole(connect):
    answer = connect(fresh_key("roomy")).chat(tools=[TOOL])
    [call] = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (call.type, call.function.name) == ("function", "weather")
    assert json.loads(call.function.arguments) == TOOL_ARGUMENTS


def test_a_streamed_tool_call_is_put_together_from_its_pieces(connect):
    chunks = connect(fresh_key("roomy")).stream(tools=[TOOL])
    pieces = [piece for chunk in chunks for piece in chunk.choices[0].delta.tool_calls or []]
    assert (pieces[0].id, pieces[0].function.name) == ("call_weather", "weather")
    assert len(pieces) > 2
    assert json.loads("".join(piece.function.arguments for piece in pieces)) == TOOL_ARGUMENTS
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_the_answer_to_a_tool_call_is_taken_back(connect):
    caller = connect(fresh_key("roomy"))
    question = [{"role": "user", "content": "how warm is it?"}]
    asked = caller.chat(tools=[TOOL], messages=question).choices[0].message
    result = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "twenty"}
    messages = [*question, asked.model_dump(exclude_none=True), result]
    assert caller.chat(tools=[TOOL], messages=messages).choices[0].message.content == "You said: twenty"


def test_the_rate_headers_and_the_request_id_are_within_reach(connect):
    key = fresh_key("roomy")
    for given in ({}, {"stream": True}):
        headers = connect(key).raw(**given).headers
        assert headers["x-ratelimit-limit-requests"] == "1000"
        assert headers["x-ratelimit-limit-tokens"] == "1000000"
        assert int(headers["x-ratelimit-remaining-tokens"]) < 1_000_000
        assert headers["ratelimit-policy"].startswith('"requests";q=1000;w=1')
        assert headers["x-request-id"] == tries(key)[-1]["requestId"]


def test_the_request_id_is_an_attribute_of_the_answer(connect):
    key = fresh_key("roomy")
    assert connect(key).chat()._request_id == tries(key)[-1]["requestId"]


def test_the_models_are_listed(connect):
    assert "demo" in connect(fresh_key("roomy")).models()
