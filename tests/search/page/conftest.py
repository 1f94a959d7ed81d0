"""The page as people meet it: a browser, the API, an index of 42 companies, an endpoint that can be taken away."""

from types import SimpleNamespace

import httpx
import pytest
from browser import Visit, chromium, served
from companies import DIMENSION, MODEL
from encoder import Encoder
from forest import forest
from market import Switch
from waiting import wait_until

from index.base import Spec
from index.open import open_index
from search.app import create_app
from search.settings import Settings
from serving.client import EmbeddingClient


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    index = open_index(str(tmp_path_factory.mktemp("page") / "index"), create=Spec(MODEL, DIMENSION))
    index.write(forest())
    index.refresh()
    encoder = Encoder()
    with EmbeddingClient([encoder.address]) as client:
        yield SimpleNamespace(index=index, client=client, endpoint=Switch(client))
    encoder.stop()


@pytest.fixture(scope="module")
def address(parts):
    with served(create_app(parts.index, parts.endpoint, Settings(rate=0))) as address:
        yield address


@pytest.fixture(autouse=True)
def left_well(request):
    """Whatever a test took away, the next one that is served by the same app finds all of it there again."""
    yield
    if "address" in request.fixturenames:
        ready = f"{request.getfixturevalue('address')}/readyz"
        wait_until(lambda: httpx.get(ready).status_code == 200, seconds=30)


# Of a module, and not of the session: while Playwright runs, nothing else in this thread may run an event loop.
@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, address):
    with Visit(browser, address) as page:
        yield page
