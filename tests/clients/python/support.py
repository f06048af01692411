"""What every test of a package for Python needs: the package's adapter, fresh keys, and what the proxy saw.

An adapter's module has

- ``CALLERS``: by name the ways to call the package, each made with a key and perhaps ``retries``; see `adapters.common`
- ``ERRORS``: the class that a program meets, by what happened
- ``HABITS``: what sets the package apart, if anything does; see `Habits`
- ``told(error)``: what a program can read of an error, as a `Told`
"""

import importlib
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

BASE_URL = os.environ["BASE_URL"]
DESK_URL = os.environ["DESK_URL"]
# What the list of clients says of this one.
CLIENT = json.loads(os.environ["CLIENT"])

ANSWER = "You said: hi there"
TOOL_ARGUMENTS = {"town": "example", "days": 1}


@dataclass
class Told:
    """What a program can read of an error."""

    status: int | None
    message: str
    type: str | None = None
    code: str | None = None
    param: str | None = None


@dataclass
class Habits:
    # The name on the wire of what a cap of zero sets.
    bad_field: str = "max_tokens"
    # The smallest cap that it sends as it is given.
    smallest_cap: int = 3
    # Whether it asks for the usage of every stream.
    asks_for_usage: bool = False
    # Whether a program is told how many tokens an embedding took.
    counts_embeddings: bool = True
    # What happened so that a program can read type, code and param; None means whatever happened.
    tells: frozenset | None = None
    # The type of an error by its status, where its route has types of its own.
    type_of: Callable = lambda _, type: type
    # Whether the errors of the upstreams that it reaches have codes.
    upstream_has_codes: bool = True
    # How often it comes to an upstream that fails, if it may retry twice.
    tries_of_failure: int = 3


adapter = importlib.import_module(f"adapters.{CLIENT['adapter']}")
HABITS = getattr(adapter, "HABITS", Habits())


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
