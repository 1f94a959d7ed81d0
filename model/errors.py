"""What a person can put right: a command line prints the message as one line and ends with exit code 2."""


class InputError(ValueError):
    """Says what was given, what is accepted, and what to do."""


class DataError(InputError):
    """Pairs or companies that cannot be trained on; the message names the file and the row."""


class EncoderError(InputError):
    """An encoder that cannot be loaded."""


class RunError(InputError):
    """A directory that cannot take this run."""


class ExportError(InputError):
    """An export that must not be served."""
