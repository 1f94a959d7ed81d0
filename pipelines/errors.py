"""How a job ends that does not end well."""

from model.errors import InputError


class JobFailed(Exception):
    """The job began and did not come to its end; the same command goes on where it stopped."""


class FileUnreadable(InputError):
    """A file that ends too early, or is not what its name says."""
