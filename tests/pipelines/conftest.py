import pytest
from encoder import Encoder


@pytest.fixture
def encoder():
    running = Encoder()
    yield running
    running.stop()
