"""Ten thousand records, one in a hundred of them bad: the good ones are indexed, the bad ones told apart and mended."""

import itertools
import random
from collections import Counter

from bad_records import BAD
from place import Place

GOOD, WRONG = 9_900, 100


def test_every_good_record_is_indexed_and_every_bad_one_comes_in_when_mended(server, tmp_path):
    place = Place(tmp_path, server.address)
    good = [{"id": f"g{number}", "description": f"Makes part {number}"} for number in range(GOOD)]
    bad = list(itertools.islice(itertools.cycle(BAD), WRONG))
    mixed = [*good, *bad]
    random.Random(5).shuffle(mixed)
    counts = place.run(place.file(*mixed))
    assert counts == {"bad": WRONG, "encoded": GOOD, "indexed": GOOD, "read": GOOD + WRONG}
    assert len(place.index.get_many(record["id"] for record in good)) == place.index.status().live == GOOD

    letters = place.dead()
    assert {letter["stage"] for letter in letters} == {"parse"}
    assert fields(letter["reason"] for letter in letters) == fields(BAD[line][0] for line in bad)
    assert len(BAD) >= 20 and len(fields(reason for reason, _ in BAD.values())) >= 8
    for beginning, inside in BAD.values():
        assert any(letter["reason"].startswith(beginning) and inside in letter["reason"] for letter in letters)

    mended = [
        {**letter, "record": {"id": f"m{number}", "description": "Mended"}} for number, letter in enumerate(letters)
    ]
    counts = place.run(place.file(*mended, name="mended.jsonl"), kind="--replay")
    assert counts == {"encoded": WRONG, "indexed": WRONG, "read": WRONG}
    assert place.index.status().live == GOOD + WRONG


def fields(reasons) -> Counter:
    return Counter(reason.partition(":")[0] for reason in reasons)
