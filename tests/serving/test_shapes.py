import pytest

from serving.server.compute.shapes import (
    LENGTHS,
    TOKENS_PER_RUN,
    capacity,
    next_run,
    padded_length,
    row_sizes,
    run_length,
)


@pytest.mark.parametrize(("tokens", "most", "expected"), [
    (2, 128, 8), (8, 128, 8), (9, 128, 16), (65, 128, 96), (97, 128, 128), (128, 128, 128),
    (97, 100, 100), (3, 4, 4), (600, 1024, 1024), (512, 512, 512),
])  # fmt: skip
def test_a_text_is_padded_to_the_next_length_but_never_past_the_models_limit(tokens, most, expected):
    assert padded_length(tokens, most) == expected


@pytest.mark.parametrize(("longest", "padded", "expected"), [
    (97, 128, 104), (104, 128, 104), (105, 128, 112), (128, 128, 128), (2, 8, 8), (3, 4, 4), (98, 100, 100),
    (385, 512, 416),  # steps of 32: a sixteenth
])  # fmt: skip
def test_a_run_is_as_long_as_its_longest_text_but_for_a_step(longest, padded, expected):
    assert run_length(longest, padded) == expected


def test_a_run_holds_its_longest_text_and_is_of_few_lengths():
    for padded in (*LENGTHS, 1024):
        lengths = {longest: run_length(longest, padded) for longest in range(1, padded + 1)}
        assert all(longest <= length <= padded for longest, length in lengths.items())
        assert len(set(lengths.values())) <= 16


@pytest.mark.parametrize("length", [8, 100, 128, 512, 1024, 4096])
def test_a_full_run_holds_one_text_at_least_and_no_more_tokens_than_it_may(length):
    full = capacity(length, max_texts=256)
    assert full == 1 or full * length <= TOKENS_PER_RUN


def test_a_run_never_has_more_texts_than_the_configuration_allows():
    assert capacity(8, max_texts=5) == 5


@pytest.mark.parametrize(("waiting", "expected"), [
    (1, (1, 1)), (2, (1, 1)),  # 2 of 4 rows would be half empty
    (3, (3, 4)), (4, (4, 4)), (5, (4, 4)), (6, (6, 8)), (7, (7, 8)), (8, (8, 8)), (40, (8, 8)),
])  # fmt: skip
def test_eight_long_texts_fill_a_run_and_fewer_are_padded_only_when_most_of_it_is_texts(waiting, expected):
    assert next_run(waiting, capacity=8) == expected


def test_every_run_has_one_of_few_sizes_and_takes_something():
    for full in (1, 2, 5, 8, 10, 64, 128):
        for waiting in range(1, 200):
            taken, rows = next_run(waiting, full)
            assert 1 <= taken <= min(waiting, rows) and rows in row_sizes(full)
