"""What a call that is let through looks like from inside a program."""

import pytest
from support import ANSWER, HABITS, TOOL_ARGUMENTS, fresh_key, statuses

WAYS = pytest.mark.parametrize("way", ["chat", "stream"])


def call(caller, way, **given):
    return getattr(caller, way)(**given)


@WAYS
def test_an_answer_arrives(connect, way):
    key = fresh_key("roomy")
    answer = call(connect(key), way)
    assert (answer.text, answer.finish, answer.calls) == (ANSWER, "stop", [])
    if way == "stream":
        assert answer.pieces > 3
    assert statuses(key) == [200]


@WAYS
def test_an_answer_is_cut_where_the_caller_caps_it(connect, way):
    answer = call(connect(fresh_key("roomy")), way, prompt="and so on " * 10, cap=HABITS.smallest_cap)
    assert (len(answer.text.split()), answer.finish) == (HABITS.smallest_cap, "length")


@WAYS
def test_a_tool_call_arrives_whole(connect, way):
    answer = call(connect(fresh_key("roomy")), way, tools=True)
    assert answer.finish == "tool_calls"
    assert answer.calls == [("weather", TOOL_ARGUMENTS)]


@WAYS
def test_a_picture_is_taken(connect, way):
    assert call(connect(fresh_key("roomy")), way, image=True).text == f"{ANSWER} [image]"


def test_a_plain_answer_comes_with_its_usage(connect):
    assert connect(fresh_key("roomy")).chat().usage == (2, 4)


def test_a_stream_comes_with_its_usage_if_that_is_asked_for(connect):
    answer = connect(fresh_key("roomy")).stream(usage=True)
    assert (answer.text, answer.usage) == (ANSWER, (2, 4))


@pytest.mark.parametrize("asked", [{}, {"usage": False}], ids=["not asked", "declined"])
def test_a_stream_comes_without_usage_that_is_not_asked_for(connect, asked):
    answer = connect(fresh_key("roomy")).stream(**asked)
    assert (answer.text, answer.usage) == (ANSWER, (2, 4) if HABITS.asks_for_usage else None)


def test_the_answer_to_a_tool_call_is_taken_back(connect):
    caller = connect(fresh_key("roomy"))
    question = {"prompt": "how warm is it?"}
    answer = caller.chat(tools=True, **question)
    assert caller.give_back(answer, "twenty", **question).text == "You said: twenty"
