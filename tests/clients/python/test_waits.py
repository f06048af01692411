"""A short wait is sat out by the package itself, a long one is said at once."""

import math

import openai
import pytest
from support import ANSWER, fresh_key, statuses, tries

# Timers may ring a millisecond early; the announced wait is counted from when the proxy answered.
EARLY_MS = 2


def until_it_waited(key, call):
    """Calls until a call had to come twice, and gives what was seen of that one call.

    On a slow machine the bucket may have filled up again between two calls.
    """
    for _ in range(10):
        before = len(tries(key))
        assert call() == ANSWER
        seen = tries(key)[before:]
        if len(seen) > 1:
            return seen
    return pytest.fail("no call was refused")


def plain(caller):
    return caller.chat().choices[0].message.content


def streamed(caller):
    return "".join(chunk.choices[0].delta.content or "" for chunk in caller.stream())


@pytest.mark.parametrize("way", [plain, streamed])
def test_a_short_wait_is_sat_out_and_the_first_return_is_admitted(connect, way):
    key = fresh_key("short")
    caller = connect(key)
    refused, admitted = until_it_waited(key, lambda: way(caller))
    assert (refused["status"], admitted["status"]) == (429, 200)
    assert refused["shouldRetry"] is None
    assert refused["retryAfter"] == math.ceil(refused["retryAfterMs"] / 1_000)
    assert admitted["at"] - refused["answeredAt"] >= refused["retryAfterMs"] - EARLY_MS
    assert admitted["retryCount"] == "1"


@pytest.mark.parametrize("plan, told", [("long", "rate_limit_exceeded"), ("daily", "insufficient_quota")])
def test_a_long_wait_is_raised_at_once(connect, plan, told):
    key = fresh_key(plan)
    caller = connect(key)
    caller.chat()
    for call in (caller.chat, caller.stream):
        with pytest.raises(openai.RateLimitError) as caught:
            call()
        assert caught.value.code == told
    assert statuses(key) == [200, 429, 429]
    assert tries(key)[-1]["shouldRetry"] == "false"
    assert tries(key)[-1]["retryAfter"] > 60
