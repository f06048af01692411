"""LiteLLM as a client, by responses.

It asks for them in its own way: nothing is tried again, of an error only the text is kept, and a stream of a model that
it does not know is made up of a plain answer.
"""

import litellm
from support import Habits

from .common import Awaiting, Blocking
from .litellm_chat import ERRORS, Options, told
from .openai_responses import Responses

__all__ = ["ERRORS", "told"]


class BlockingCall(Responses, Options, Blocking):
    def send(self, request, **more):
        return litellm.responses(**self.arguments(request, more))


class AwaitingCall(Responses, Options, Awaiting):
    async def send(self, request, **more):
        return await litellm.aresponses(**self.arguments(request, more))


CALLERS = {"responses": BlockingCall, "aresponses": AwaitingCall}
HABITS = Habits(asks_for_usage=True, smallest_cap=16)
