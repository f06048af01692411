from importlib import metadata

import pytest
from adapters.common import RUNNER
from support import CLIENT, adapter


def pytest_report_header():
    return f"{CLIENT['package']} {metadata.version(CLIENT['package'])}"


def pytest_sessionstart():
    found, wanted = metadata.version(CLIENT["package"]), CLIENT["version"]
    if found != wanted:
        pytest.exit(f"{CLIENT['package']} is {found}, want {wanted}", returncode=1)


def pytest_unconfigure():
    # What still waits in it may otherwise outlive what it waits for.
    RUNNER.close()


@pytest.fixture(params=adapter.CALLERS.values(), ids=adapter.CALLERS.keys())
def connect(request):
    """Makes a caller for a key: once one that blocks, once one to await."""
    return request.param
