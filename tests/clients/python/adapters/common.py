"""What the adapters have in common: what they send, what they give, and the two ways to call.

A caller has ``chat(**given)`` and ``stream(**given)``, which give an `Answer`, and ``give_back(answer, text, **given)``
for the next answer, after the tool that ``answer`` calls has given ``text``. Where the package can, ``embed(texts,
model)`` gives `Vectors`. What goes wrong in the middle of a stream is raised with the pieces before it as ``seen``.
What can be given stands in `Asked`.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

TOOL = {
    "name": "weather",
    "description": "How the weather will be",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}, "days": {"type": "integer"}}},
}
# One point.
PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@dataclass
class Asked:
    """What a call is to ask for."""

    model: str = "demo"
    prompt: str = "hi there"
    image: bool = False
    tools: bool = False
    cap: int | None = None
    usage: bool | None = None


@dataclass
class Answer:
    """What a program has of an answer; ``raw`` is what the package needs to give it back."""

    text: str = ""
    finish: str | None = None
    usage: tuple | None = None
    # Names and parsed arguments.
    calls: list = field(default_factory=list)
    raw: Any = None
    # How many pieces of output came, if it was streamed.
    pieces: int = 0


@dataclass
class Vectors:
    """What a program has of embeddings."""

    vectors: list
    # How many tokens they took, if the package tells.
    tokens: int | None = None


def chat_messages(asked):
    """A question as chat completions take it."""
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    content = [{"type": "text", "text": asked.prompt}, picture] if asked.image else asked.prompt
    return [{"role": "user", "content": content}]


class Blocking:
    """A caller over ``send(request, **more)``, which gives an answer or something to iterate over."""

    def whole(self, request):
        return self.send(request)

    def pieces(self, request, **more):
        seen = []
        try:
            for piece in self.send(request, **more):
                seen.append(piece)
        except Exception as error:
            error.seen = seen
            raise
        return seen


# One event loop for all, as in a program: some packages keep connections that belong to it.
RUNNER = asyncio.Runner()


class Awaiting:
    """A caller over an asynchronous ``send``."""

    @staticmethod
    def wait_for(coming):
        async def wait():
            return await coming

        return RUNNER.run(wait())

    def whole(self, request):
        return self.wait_for(self.send(request))

    def pieces(self, request, **more):
        async def read():
            seen = []
            try:
                # Some packages give the stream at once, others have to be awaited for it.
                stream = self.send(request, **more)
                async for piece in await stream if asyncio.iscoroutine(stream) else stream:
                    seen.append(piece)
            except Exception as error:
                error.seen = seen
                raise
            return seen

        return self.wait_for(read())
