"""What was on its way to the former index when the whole of a move had ended: not acknowledged there, and not lost."""

import pytest
from companies import OTHER_MODEL, company, statuses
from moving import fill, moved

from index.document import Document
from index.errors import WrongModel

LATE = 900


@pytest.fixture
def late(index, new_model, flags, capsys, monkeypatch):
    """The next bulk request of `index` leaves after the move."""
    fill(index)
    bulk = index._client.bulk

    def move_first(**request):
        monkeypatch.setattr(index._client, "bulk", bulk)
        moved(capsys, *flags)
        return bulk(**request)

    monkeypatch.setattr(index._client, "bulk", move_first)
    return index


@pytest.mark.parametrize("index", ["elasticsearch"], indirect=True)
def test_a_late_company_is_refused_by_the_former_index_for_its_model(late):
    with pytest.raises(WrongModel):  # whoever wrote it encodes it anew
        late.write([company("late", LATE)])
    assert late.spec().model == OTHER_MODEL and late.former().known(["late"]) == {}


@pytest.mark.parametrize("index", ["elasticsearch"], indirect=True)
def test_a_late_delete_is_acknowledged_where_it_is_kept(late):
    assert statuses(late.write([Document.tombstone("3", LATE)])) == ["deleted"]
    assert (late.known(["3"])["3"].version, late.known(["3"])["3"].deleted) == (LATE, True)
    assert not late.former().known(["3"])["3"].deleted
