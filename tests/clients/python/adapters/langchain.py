"""LangChain's ``ChatOpenAI``. Its errors are the openai package's, most of them in classes of its own."""

from langchain_openai import ChatOpenAI
from langchain_openai.chat_models import base
from support import BASE_URL, Habits

from . import openai_chat
from .common import TOOL, Answer, Asked, Awaiting, Blocking, chat_messages
from .openai_chat import told

__all__ = ["told"]


def pair_of(usage):
    return (usage["input_tokens"], usage["output_tokens"]) if usage else None


def answer_of(message, pieces=0):
    calls = [(call["name"], call["args"]) for call in message.tool_calls]
    finish = message.response_metadata["finish_reason"]
    return Answer(message.text, finish, pair_of(message.usage_metadata), calls, raw=message, pieces=pieces)


class Chat:
    """What a program does; a request is a model with the messages for it."""

    def __init__(self, key, retries=None):
        self._key, self._retries = key, retries

    def request_for(self, asked, messages=None):
        options = {"model": asked.model, "base_url": BASE_URL, "api_key": self._key}
        if self._retries is not None:
            options["max_retries"] = self._retries
        if asked.cap is not None:
            options["max_tokens"] = asked.cap
        if asked.usage is not None:
            options["stream_usage"] = asked.usage
        model = ChatOpenAI(**options)
        if asked.tools:
            model = model.bind_tools([{"type": "function", "function": TOOL}])
        return model, messages or chat_messages(asked)

    def chat(self, **given):
        return answer_of(self.whole(self.request_for(Asked(**given))))

    def stream(self, **given):
        chunks = self.pieces(self.request_for(Asked(**given)), stream=True)
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        return answer_of(whole, pieces=sum(bool(chunk.text or chunk.tool_call_chunks) for chunk in chunks))

    def give_back(self, answer, text, **given):
        asked = Asked(tools=True, **given)
        result = {"role": "tool", "tool_call_id": answer.raw.tool_calls[0]["id"], "content": text}
        return answer_of(self.whole(self.request_for(asked, [*chat_messages(asked), answer.raw, result])))


class BlockingModel(Chat, Blocking):
    def send(self, request, stream=False):
        model, messages = request
        return model.stream(messages) if stream else model.invoke(messages)


class AwaitingModel(Chat, Awaiting):
    def send(self, request, stream=False):
        model, messages = request
        return model.astream(messages) if stream else model.ainvoke(messages)


CALLERS = {"invoke": BlockingModel, "ainvoke": AwaitingModel}
ERRORS = {
    **openai_chat.ERRORS,
    "wrong key": base.OpenAIAuthenticationError,
    "unknown model": base.OpenAIModelNotFoundError,
    "bad request": base.OpenAIInvalidRequestError,
    "too long": base.OpenAIInvalidRequestError,
    "refused": base.OpenAIRateLimitError,
    "failed": base.OpenAIAPIError,
    "broken plain": base.OpenAIAPIError,
}
HABITS = Habits(cap_field="max_completion_tokens")
