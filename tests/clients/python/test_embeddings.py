"""What a program gets of embeddings."""

import math

import pytest
from support import HABITS, adapter, fresh_key, statuses


def test_every_text_has_a_vector_of_its_own(connect):
    key = fresh_key("roomy")
    found = connect(key).embed(["hi there", "hello", "hi there"])
    first, other, again = found.vectors
    assert len(first) == len(other) == 8
    assert all(abs(math.hypot(*vector) - 1) < 1e-3 for vector in found.vectors)
    assert first == again != other
    assert found.tokens == (5 if HABITS.counts_embeddings else None)
    assert statuses(key) == [200]


def test_the_dimensions_are_those_that_were_asked_for(connect):
    [vector] = connect(fresh_key("roomy")).embed(["hi there"], dimensions=3).vectors
    assert len(vector) == 3


def test_an_unknown_model(connect):
    key = fresh_key("roomy")
    expected = adapter.ERRORS.get("unknown model of embeddings", adapter.ERRORS["unknown model"])
    with pytest.raises(expected) as caught:
        connect(key).embed(["hi"], model="nonesuch")
    assert adapter.told(caught.value).status == 404
    assert statuses(key) == [404]


def test_a_short_wait_is_sat_out(connect):
    key = fresh_key("short")
    caller = connect(key)
    for _ in range(10):
        caller.embed(["hi"])
        if 429 in statuses(key):
            break
    assert statuses(key)[-2:] == [429, 200]
