"""What is left to do for a batch of companies, given what the index has of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from index.base import Known
from index.document import Document, text_hash
from index.merge_versions import keeps_vector
from model.contract import COMPANY_FIELDS, Contract, TextRecipe
from pipelines.metrics.counters import lookup, planned, watched
from pipelines.records import Company
from pipelines.services import Session
from pipelines.transforms.batch import Done, StageDoFn, Task

EMPTY = "description: the model's text recipe {recipe!r} makes an empty text of this company"


class SkipUnchanged(StageDoFn):
    """list[Company] -> list[Task]."""

    @watched
    def work(self, element: list[Company]) -> Done:
        return self.session.by_live_model(partial(plan_batch, self.session, element))


def plan_batch(session: Session, companies: list[Company], contract: Contract) -> Done:
    latest = newest(companies)
    done = Done(counts=Counter(stale=len(companies) - len(latest)))
    planned(len(companies), contract.fingerprint)
    with lookup.time():
        known = session.index.known(company.document.id for company in latest)
    for company in latest:
        task = plan(company, known, contract.recipe, contract.fingerprint, session.services.force)
        if isinstance(task, str):
            done.counts[task] += 1
        elif task.text == "":
            session.index.require(contract.fingerprint)  # the next model's recipe may make a text of it
            done.refuse(task, "encode", EMPTY.format(recipe=contract.text_recipe))
        else:
            done.tasks.append(task)
    return done


def newest(companies: Iterable[Company]) -> list[Company]:
    """One company an id, the one that the index would keep; of equals the first."""
    kept: dict[str, Company] = {}
    for company in companies:
        other = kept.get(company.document.id)
        if other is None or company.document.order > other.document.order:
            kept[company.document.id] = company
    return list(kept.values())


def plan(
    company: Company, known: Mapping[str, Known], recipe: TextRecipe, model: str, force: bool = False
) -> Task | Literal["stale", "unchanged"]:
    """What is newer and otherwise the same still moves the version on, so that nothing older can come between. With
    `force`, an equal version is written again; the vector of an unchanged text is good as it is."""
    document, stored = company.document, known.get(company.document.id)
    again = bool(force and stored and stored.version == document.version)
    if stored and stored.order >= document.order and not again:
        return "stale" if stored.order > document.order else "unchanged"
    task = partial(Task, source=company.source, arrived=company.arrived, trace=company.trace)
    if document.deleted:
        return task(document)
    text = text_of(document, recipe)
    document = replace(document, model=model, text_hash=text_hash(text))
    if not keeps_vector(document, stored):
        return task(document, text=text)
    assert stored is not None
    same = stored.fields_hash == document.fields_hash
    return task(document, moves_on=same and not again)


def text_of(document: Document, recipe: TextRecipe) -> str:
    return recipe.render({name: getattr(document, name) for name in COMPANY_FIELDS})
