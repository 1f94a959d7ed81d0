"""Tasks to the endpoint and back: each with its vector, or with the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipelines.unchanged import Task
from serving.client import EmbeddingClient, TextsRefused


@dataclass(frozen=True)
class Encoded:
    """What came back for a batch of tasks; `refused` are the reasons, by id, of those without a vector."""

    tasks: list[Task]
    refused: dict[str, str]
    encoded: int

    @property
    def good(self) -> list[Task]:
        return [task for task in self.tasks if task.document.id not in self.refused]

    @property
    def bad(self) -> list[tuple[Task, str]]:
        """With a reason that names the field."""
        return [
            (task, f"description: refused by the encoder: {self.refused[task.document.id]}")
            for task in self.tasks
            if task.document.id in self.refused
        ]


def encode(connect: Callable[[], EmbeddingClient], tasks: list[Task]) -> Encoded:
    """The client sorts by length and cuts into requests of equal work; without a text to send nobody connects."""
    asked = [task for task in tasks if task.text is not None]
    if not asked:
        return Encoded(tasks, {}, 0)
    refused: dict[str, str] = {}
    try:
        vectors, models = connect().embed([task.text for task in asked if task.text is not None])
    except TextsRefused as error:
        vectors, models = error.vectors, error.fingerprints
        refused = {asked[refusal.position].document.id: refusal.reason for refusal in error.refusals}
    made = {
        task.document.id: replace(task, document=replace(task.document, model=model, embedding=vector))
        for task, vector, model in zip(asked, vectors, models, strict=True)
    }
    return Encoded([made.get(task.document.id, task) for task in tasks], refused, len(asked) - len(refused))
