"""Reports errors of the command: one line on standard error, and an exit status."""

import re
import sys
from typing import Final

from fakeapiserver.cli import suggestions

_LONG_WORD: Final = re.compile(r"(\S{60})\S{140,}(\S{20})")
_LONGEST: Final = 2000  # characters of a message


def complain(text: str, status: int) -> int:
    """Prints `text` as one line, without the middle of long words and messages. Returns `status`."""
    text = _LONG_WORD.sub(r"\1…\2", " ".join(text.splitlines()))
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    print(f"fakeapiserver: {text}", file=sys.stderr)
    return status


def refuse(error: Exception, command: str) -> int:
    """Says what is wrong with the command line, with the flag or the value that was probably meant. Returns 2."""
    return complain(f"{error}{suggestions.suggestion(error, command)} (see fakeapiserver {command} --help)", 2)
