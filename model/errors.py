"""What a person can put right about data, encoders, runs and exports."""

from common.errors import InputError


class DataError(InputError):
    """Pairs or companies that cannot be trained on; the message names the file and the row."""


class EncoderError(InputError):
    """An encoder that cannot be loaded."""


class RunError(InputError):
    """A directory that cannot take this run."""


class ExportError(InputError):
    """An export that must not be served."""
