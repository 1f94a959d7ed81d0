"""The stages of a company's way into the index, as the pipeline's steps do them, for whoever gives batches by hand."""

from pipelines.services import Services
from pipelines.transforms.all_stages import AllStages
from pipelines.transforms.encode import Encode
from pipelines.transforms.skip_unchanged import SkipUnchanged
from pipelines.transforms.write import Write


class Stages:
    """A step each, with a session of its own."""

    def __init__(self, services: Services):
        self._steps = skip, encode, write = [step(services, 1) for step in (SkipUnchanged, Encode, Write)]
        for step in self._steps:
            step.setup()
        self._all = AllStages(services, 1, size=1, max_wait=1.0)
        self._all.open()
        self.skip_unchanged, self.encode, self.write, self.all = skip.work, encode.work, write.work, self._all.work

    def close(self) -> None:
        for step in self._steps:
            step.teardown()
        self._all.session.close()
