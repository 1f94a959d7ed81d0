"""Loads a version from its numbered folder into memory; gives up when the folder goes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError
from model.contract import FLOAT32
from serving.server.models.loaded import LoadedModel
from serving.server.models.proof import precision, prove_apart
from serving.storage.base import Base, File


@dataclass(frozen=True)
class Loading:
    """How versions are loaded; all times in seconds."""

    compile: bool
    max_texts: int
    threads: int
    retries: int
    retry_seconds: float


class Dropped(Exception):
    """A load that nobody wants any more, and that is no failure; says why."""


class Loader:
    """Loads versions of one base path, one at a time; `give_up` is for any thread."""

    def __init__(self, base: Base, loading: Loading, scratch: Path):
        self._base, self._loading, self._scratch = base, loading, scratch
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Ends the load under way, and any that is asked for later."""
        self._given_up.set()

    def load(self, number: int, files: Mapping[str, File], beside: LoadedModel | None) -> LoadedModel:
        """The version that had these files, ready to answer; `beside` is one that is served meanwhile. Dropped where it
        was withdrawn before the load was done, or other files have taken its place."""

        def check() -> None:
            self._check_wanted(number)

        try:
            check()
            directory = self._base.fetch(number, self._scratch / str(number))
            if precision(directory) != FLOAT32:
                prove_apart(directory, self._loading.max_texts, check)
            # While nothing is served all cores may compile; beside a live version one alone does.
            threads = 1 if beside else self._loading.threads
            loading = self._loading
            model = LoadedModel(directory, loading.compile, loading.max_texts, threads, beside, check)
        except Dropped:
            raise
        except Exception:
            check()  # a folder that is taken away while it is read fails in any way there is
            raise
        try:
            check()
            self._check_unchanged(number, files)
        except Dropped:
            model.close()
            raise
        return model

    def _check_wanted(self, number: int) -> None:
        if self._given_up.is_set():
            raise Dropped("the server ends")
        with suppress(InputError, OSError):  # storage that is away for a while has withdrawn nothing
            if number not in self._base.versions():
                raise Dropped("it was withdrawn")

    def _check_unchanged(self, number: int, files: Mapping[str, File]) -> None:
        with suppress(InputError, OSError):
            now = self._base.files(number)
            if any(now.get(name) != file for name, file in files.items()):
                raise Dropped("its files changed meanwhile")
