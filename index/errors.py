"""What an index refuses or fails by. Each error hands its arguments on as they are: Beam pickles exceptions."""

from common.errors import InputError, Outage


class IndexMissing(InputError):
    """Nothing has been created at the address."""

    def __init__(self, url: str):
        super().__init__(url)

    def __str__(self) -> str:
        url = self.args[0]
        return (
            f"no index at {url}; `python -m pipelines.encode --index {url}` fills one, "
            f"`python -m index create --index {url} --serving HOST:PORT` makes an empty one"
        )


class WrongModel(InputError):
    """A vector of one model must never meet those of another: their distances mean nothing."""

    def __init__(self, url: str, kept: str, given: str):
        super().__init__(url, kept, given)

    def __str__(self) -> str:
        url, kept, given = self.args
        return (
            f"the index at {url} holds vectors of model {kept}, not of {given or 'one without a fingerprint'}; "
            f"`python -m pipelines.reindex --index {url} --serving HOST:PORT` moves it to the model served there"
        )


class CompanyMissing(InputError):
    """Asked for by id, and not there, or deleted."""

    def __init__(self, url: str, id: str):
        super().__init__(url, id)

    def __str__(self) -> str:
        url, id = self.args
        return f"no company {id!r} in the index at {url}"


class IndexUnusable(InputError):
    """An address that cannot be read or written; the message says why."""


class IndexUnavailable(Outage):
    """The server of an index did not answer, or answered with trouble of its own, for as long as it was tried."""


def not_an_address(url: str) -> IndexUnusable:
    return IndexUnusable(
        f"{url!r} is not the address of an index: give lance:///path/to/directory, a path, or http(s)://host:9200/alias"
    )
