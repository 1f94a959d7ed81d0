import gzip
import json

import pytest


@pytest.fixture
def listed(tmp_path):
    """Thirty listed companies, two of which have the same description."""
    path = tmp_path / "data" / "companies" / "listed.jsonl.gz"
    path.parent.mkdir(parents=True)
    lines = [json.dumps({"id": str(number), "description": f"maker of {number % 29}"}) for number in range(30)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path
