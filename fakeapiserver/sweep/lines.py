"""The lines of an error or of an output that a message shows."""


def first(error: BaseException) -> str:
    """The first line of the error, or the name of its type."""
    return " ".join((str(error).splitlines() or [type(error).__name__])[0].split())[:300]


def last(output: str) -> str:
    """The last lines of the output."""
    return "\n".join(output.splitlines()[-8:])
