"""Which class of error a program meets, what is in it, and that nobody comes again in vain."""

import openai
import pytest
from support import HELLO, fresh_key, statuses, tries


def raised(expected, call):
    with pytest.raises(openai.APIError) as caught:
        call()
    assert type(caught.value) is expected
    return caught.value


def told(error):
    return (error.type, error.code, error.param)


def test_a_wrong_key_is_an_authentication_error(connect):
    wrong = f"{fresh_key('roomy')}x"
    error = raised(openai.AuthenticationError, connect(wrong).chat)
    assert error.status_code == 401
    assert told(error) == ("invalid_request_error", "invalid_api_key", None)
    assert wrong not in error.message
    assert statuses(wrong) == [401]


def test_an_unknown_model_is_a_not_found_error(connect):
    key = fresh_key("roomy")
    error = raised(openai.NotFoundError, lambda: connect(key).chat(model="nonesuch"))
    assert told(error) == ("invalid_request_error", "model_not_found", "model")
    assert "nonesuch" in error.message
    assert statuses(key) == [404]


def test_a_bad_request_is_a_bad_request_error_that_names_the_field(connect):
    key = fresh_key("roomy")
    error = raised(openai.BadRequestError, lambda: connect(key).chat(max_tokens=0))
    assert told(error) == ("invalid_request_error", "invalid_request", "max_tokens")
    assert statuses(key) == [400]


def test_what_the_upstream_refuses_is_a_bad_request_error_in_its_words(connect):
    key = fresh_key("roomy")
    error = raised(openai.BadRequestError, lambda: connect(key).chat(model="refusing"))
    assert told(error) == ("invalid_request_error", "400", None)
    assert "maximum context length" in error.message
    assert statuses(key) == [400]


def test_a_call_that_can_never_fit_is_a_bad_request_error_and_not_tried_again(connect):
    key = fresh_key("small")
    error = raised(openai.BadRequestError, lambda: connect(key).chat(max_tokens=1_000))
    assert told(error) == ("invalid_request_error", "request_exceeds_limit", None)
    assert statuses(key) == [400]


def test_a_refusal_is_a_rate_limit_error_with_type_and_code(connect):
    key = fresh_key("long")
    caller = connect(key)
    caller.chat()
    error = raised(openai.RateLimitError, caller.chat)
    assert told(error) == ("requests", "rate_limit_exceeded", None)
    assert "Please try again in" in error.message
    assert error.response.headers["x-tollgate-limited-by"] == "calls"


def test_the_upstreams_own_refusal_is_told_apart(connect):
    key = fresh_key("roomy")
    error = raised(openai.RateLimitError, lambda: connect(key, max_retries=0).chat(model="demo-busy"))
    assert told(error) == ("requests", "rate_limit_exceeded", None)
    assert error.response.headers["x-tollgate-limited-by"] == "upstream"
    assert error.response.headers["retry-after"] == "2"


def test_an_upstream_failure_is_an_internal_server_error_and_free_however_often_it_is_tried(connect):
    key = fresh_key("daily")
    caller = connect(key)
    error = raised(openai.InternalServerError, lambda: caller.chat(model="demo-fail"))
    assert error.status_code == 502
    assert told(error) == ("server_error", "upstream_failed", None)
    # One call a day, and it is still there.
    caller.chat()
    assert statuses(key) == [502, 502, 502, 200]


def test_a_plain_answer_that_breaks_off_is_an_internal_server_error(connect):
    caller = connect(fresh_key("roomy"), max_retries=0)
    error = raised(openai.InternalServerError, lambda: caller.chat(model="demo-break"))
    assert told(error) == ("server_error", "upstream_invalid", None)


def test_a_stream_that_breaks_off_is_an_error_after_what_had_come(connect):
    key = fresh_key("roomy")
    error = raised(openai.APIError, lambda: connect(key).stream(model="demo-break"))
    assert (error.type, error.code) == ("server_error", "upstream_invalid")
    assert "incomplete" in error.message
    assert len(error.seen) > 1
    assert statuses(key) == [200]


def test_the_request_id_is_an_attribute_of_every_error(connect):
    key = fresh_key("roomy")
    error = raised(openai.NotFoundError, lambda: connect(key).chat(model="nonesuch", messages=HELLO))
    assert error.request_id == tries(key)[-1]["requestId"]
    assert error.request_id
