"""Moves to another model, for whoever tests them."""

import itertools

from commands import answer
from companies import OTHER_MODEL, company
from encoder import Encoder

from index.document import Document
from model.contract import DESCRIPTION_ONLY
from pipelines.reindex import __main__ as reindex


class NewModel(Encoder):
    """Of another model than the index, with something that happens as the n-th request comes in."""

    def __init__(self):
        super().__init__(OTHER_MODEL, DESCRIPTION_ONLY)
        self.events = {}
        self._numbers = itertools.count(1)

    def _predict(self, request, context):
        if request.model_spec.signature_name != "contract":
            self.events.pop(next(self._numbers), lambda: None)()
        return super()._predict(request, context)


def fill(index, number=30):
    """Companies 0, 1, 2, ... in versions from 100 on, and the tombstone `gone`."""
    index.write([company(str(i), 100 + i) for i in range(number)] + [Document.tombstone("gone", 77)])


def moved(capsys, *flags):
    """What a run says that comes to its end."""
    code, said, wrong = answer(capsys, reindex.main, *flags)
    assert code == 0, wrong
    return said
