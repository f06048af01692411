"""Which class of error a program meets, what is in it, and that nobody comes again in vain."""

import pytest
from support import HABITS, adapter, fresh_key, statuses, tries


def raised(what, call, **given):
    """The error of a call, and what a program can read of it."""
    expected = adapter.ERRORS[what]
    with pytest.raises(expected) as caught:
        call(**given)
    assert type(caught.value) is expected
    return caught.value, adapter.told(caught.value)


def assert_body(what, told, status, type, code, param):
    if HABITS.tells is None or what in HABITS.tells:
        assert (told.type, told.code, told.param) == (HABITS.type_of(status, type), code, param)


def of_upstream(code):
    return code if HABITS.upstream_has_codes else None


def test_a_wrong_key(connect):
    wrong = f"{fresh_key('roomy')}x"
    _, told = raised("wrong key", connect(wrong).chat)
    assert told.status == 401
    assert_body("wrong key", told, 401, "invalid_request_error", "invalid_api_key", None)
    assert wrong not in told.message
    assert statuses(wrong) == [401]


def test_an_unknown_model(connect):
    key = fresh_key("roomy")
    _, told = raised("unknown model", connect(key).chat, model="nonesuch")
    assert told.status == 404
    assert_body("unknown model", told, 404, "invalid_request_error", "model_not_found", "model")
    assert "nonesuch" in told.message
    assert statuses(key) == [404]


def test_a_bad_request_names_the_field(connect):
    key = fresh_key("roomy")
    _, told = raised("bad request", connect(key).chat, cap=0)
    assert told.status == 400
    assert_body("bad request", told, 400, "invalid_request_error", "invalid_request", HABITS.bad_field)
    assert HABITS.bad_field in told.message
    assert statuses(key) == [400]


def test_what_the_upstream_refuses_is_told_in_its_words(connect):
    key = fresh_key("roomy")
    _, told = raised("too long", connect(key).chat, model="refusing")
    assert told.status == 400
    assert_body("too long", told, 400, "invalid_request_error", of_upstream("400"), None)
    assert "maximum context length" in told.message
    assert statuses(key) == [400]


def test_a_call_that_can_never_fit_is_not_tried_again(connect):
    key = fresh_key("small")
    _, told = raised("bad request", connect(key).chat, cap=1_000)
    assert_body("bad request", told, 400, "invalid_request_error", "request_exceeds_limit", None)
    assert statuses(key) == [400]


def test_the_upstreams_own_refusal_is_told_apart(connect):
    key = fresh_key("roomy")
    _, told = raised("refused", connect(key, retries=0).chat, model="demo-busy")
    assert told.status == 429
    assert_body("refused", told, 429, "requests", of_upstream("rate_limit_exceeded"), None)
    [seen] = tries(key)
    # What is left of its two seconds, if another client was told of them before.
    assert seen["limitedBy"] == "upstream" and seen["retryAfter"] in (1, 2)


def test_an_upstream_failure_is_free_however_often_it_is_tried(connect):
    key = fresh_key("daily")
    caller = connect(key, retries=2)
    _, told = raised("failed", caller.chat, model="demo-fail")
    assert told.status == 502
    assert_body("failed", told, 502, "server_error", "upstream_failed", None)
    # One call a day, and it is still there.
    caller.chat()
    assert statuses(key) == [502] * HABITS.tries_of_failure + [200]


def test_a_plain_answer_that_breaks_off(connect):
    _, told = raised("broken plain", connect(fresh_key("roomy"), retries=0).chat, model="demo-break")
    assert told.status == 502
    assert_body("broken plain", told, 502, "server_error", "upstream_invalid", None)


def test_a_stream_that_breaks_off_is_an_error_after_what_had_come(connect):
    key = fresh_key("roomy")
    error, told = raised("broken stream", connect(key).stream, model="demo-break")
    assert_body("broken stream", told, 502, "server_error", "upstream_invalid", None)
    assert "incomplete" in told.message
    assert len(error.seen) > 1
    assert statuses(key) == [200]
