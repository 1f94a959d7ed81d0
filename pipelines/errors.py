"""How a job ends that does not end well."""


class JobFailed(Exception):
    """The job began and did not come to its end; the same command goes on where it stopped."""
