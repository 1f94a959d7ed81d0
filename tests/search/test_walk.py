"""A question's way through the service is as short as docs/architecture.md says."""

from walk import files_of, walk

MOST_FILES, MOST_HOPS = 24, 65


def test_a_question_passes_at_most_twenty_four_files_from_its_request_to_its_response(index, encoder):
    way = walk("question", index.url, encoder.address, "money for everybody")
    assert "money for everybody" in encoder.texts  # the premise
    files = files_of(way)
    assert files[0] == "search/access/headers.py" and {"serving/client.py", "index/base.py"} <= set(files)
    assert len(set(files)) <= MOST_FILES, set(files)
    assert len(files) - 1 <= MOST_HOPS, files
