"""What a command line tells in one line, without a traceback, before it ends with exit code 2."""


class CommandError(Exception):
    """Its message is that line."""


class InputError(CommandError, ValueError):
    """What a person gave cannot be used: says what was given, what is accepted, and what to do."""


class Outage(CommandError):
    """A service is away or sick: what was given may be right, and the same may go well later."""
