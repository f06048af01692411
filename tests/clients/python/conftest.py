import os

import openai
import pytest
from support import Awaiting, Blocking


def pytest_report_header():
    return f"openai {openai.__version__}"


def pytest_sessionstart():
    wanted = os.environ["CLIENT_VERSION"]
    if openai.__version__ != wanted:
        pytest.exit(f"openai is {openai.__version__}, want {wanted}", returncode=1)


@pytest.fixture(params=[Blocking, Awaiting], ids=["OpenAI", "AsyncOpenAI"])
def connect(request):
    """Makes a client for a key: once the blocking one, once the one to await."""
    return request.param
