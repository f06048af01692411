"""LangChain's ``ChatOpenAI``. Its errors are the openai package's, most of them in classes of its own."""

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_openai.chat_models import base
from support import BASE_URL, CLIENT, Habits
from tiktoken import Encoding, registry

from . import openai_chat
from .common import TOOL, Answer, Asked, Awaiting, Blocking, Vectors, chat_messages
from .openai_chat import told

__all__ = ["told"]

# For embeddings it sends token ids. Its vocabulary would come from the network; one of bytes serves as well here.
BYTES = {bytes([byte]): byte for byte in range(256)}
registry.ENCODINGS["cl100k_base"] = Encoding("bytes", pat_str=r"\w+|\W+", mergeable_ranks=BYTES, special_tokens={})

RESPONSES = CLIENT.get("route") == "responses"


def pair_of(usage):
    return (usage["input_tokens"], usage["output_tokens"]) if usage else None


def finish_of(metadata, calls):
    """Responses say whether they are whole, and leave the rest to be seen."""
    if "finish_reason" in metadata:
        return metadata["finish_reason"]
    return "length" if metadata["status"] == "incomplete" else "tool_calls" if calls else "stop"


def answer_of(message, pieces=0):
    calls = [(call["name"], call["args"]) for call in message.tool_calls]
    finish = finish_of(message.response_metadata, calls)
    return Answer(message.text, finish, pair_of(message.usage_metadata), calls, raw=message, pieces=pieces)


class Chat:
    """What a program does; a request is a model with the messages for it."""

    def __init__(self, key, retries=None):
        self._key, self._retries = key, retries

    def embeddings(self, model, given):
        return OpenAIEmbeddings(model=model, base_url=BASE_URL, api_key=self._key, **given)

    def request_for(self, asked, messages=None):
        options = {"model": asked.model, "base_url": BASE_URL, "api_key": self._key}
        if self._retries is not None:
            options["max_retries"] = self._retries
        if asked.cap is not None:
            options["max_tokens"] = asked.cap
        if asked.usage is not None and not RESPONSES:
            options["stream_usage"] = asked.usage
        model = ChatOpenAI(use_responses_api=RESPONSES, **options)
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

    def embed(self, texts, model="demo", **given):
        return Vectors(self.embeddings(model, given).embed_documents(texts))


class AwaitingModel(Chat, Awaiting):
    def send(self, request, stream=False):
        model, messages = request
        return model.astream(messages) if stream else model.ainvoke(messages)

    def embed(self, texts, model="demo", **given):
        return Vectors(self.wait_for(self.embeddings(model, given).aembed_documents(texts)))


CALLERS = {"invoke": BlockingModel, "ainvoke": AwaitingModel}
ERRORS = {
    **openai_chat.ERRORS,
    "wrong key": base.OpenAIAuthenticationError,
    "unknown model": base.OpenAIModelNotFoundError,
    "unknown model of embeddings": openai_chat.ERRORS["unknown model"],
    "bad request": base.OpenAIInvalidRequestError,
    "too long": base.OpenAIInvalidRequestError,
    "refused": base.OpenAIRateLimitError,
    "failed": base.OpenAIAPIError,
    "broken plain": base.OpenAIAPIError,
}
HABITS = Habits(
    bad_field="max_output_tokens" if RESPONSES else "max_completion_tokens",
    asks_for_usage=RESPONSES,
    counts_embeddings=False,
)
