"""A short wait is sat out by the package itself, a long one is said at once."""

import math

import pytest
from support import ANSWER, HABITS, adapter, fresh_key, tries

# Timers may ring a millisecond early; the announced wait is counted from when the proxy answered.
EARLY_MS = 2


def until_it_waited(key, call):
    """Calls until a call had to come twice, and gives what was seen of that one call.

    On a slow machine the bucket may have filled up again between two calls.
    """
    for _ in range(10):
        before = len(tries(key))
        assert call().text == ANSWER
        seen = tries(key)[before:]
        if len(seen) > 1:
            return seen
    return pytest.fail("no call was refused")


@pytest.mark.parametrize("way", ["chat", "stream"])
def test_a_short_wait_is_sat_out_and_the_first_return_is_admitted(connect, way):
    key = fresh_key("short")
    refused, admitted = until_it_waited(key, getattr(connect(key), way))
    assert (refused["status"], admitted["status"]) == (429, 200)
    assert refused["shouldRetry"] is None
    assert refused["retryAfter"] == math.ceil(refused["retryAfterMs"] / 1_000)
    assert admitted["at"] - refused["answeredAt"] >= refused["retryAfterMs"] - EARLY_MS
    assert admitted["retryCount"] == "1"


@pytest.mark.parametrize("way", ["chat", "stream"])
@pytest.mark.parametrize(
    "plan, type, code, limit",
    [
        ("long", "requests", "rate_limit_exceeded", "calls"),
        ("daily", "insufficient_quota", "insufficient_quota", "day"),
    ],
    ids=["long", "daily"],
)
def test_a_long_wait_is_said_at_once(connect, way, plan, type, code, limit):
    key = fresh_key(plan)
    caller = connect(key)
    caller.chat()
    with pytest.raises(adapter.ERRORS["refused"]) as caught:
        getattr(caller, way)()
    told = adapter.told(caught.value)
    assert told.status == 429
    assert "Please try again in" in told.message
    if HABITS.tells is None or "refused" in HABITS.tells:
        assert (told.type, told.code) == (HABITS.type_of(429, type), code)
    [_, refused] = tries(key)
    assert (refused["status"], refused["shouldRetry"], refused["limitedBy"]) == (429, "false", limit)
    assert refused["retryAfter"] > 60
