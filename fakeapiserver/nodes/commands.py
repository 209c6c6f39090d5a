"""What a container's command says of its run, where it is as plain as `sleep 300` or `sh -c "exit 3"`. Pure.

No shell: statements are told apart and each has to be one of a few programs that only wait or end. What asks for more (variables
that matter, redirections, loops) says nothing.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_SCRIPT_FLAGS: Final = frozenset({"-c", "-ec", "-xc", "-exc"})
_SEPARATOR: Final = re.compile(r"\s*(&&|\|\||;|\n)\s*")
# What makes a statement more than a program with its arguments.
_SYNTAX: Final = re.compile(r"[`<>|&(){}]|\$\(")
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_EXIT_CODE: Final = re.compile(r"\d{1,3}")


class Run(NamedTuple):
    """seconds: until it ends by itself, None: never. exit_code: then."""

    seconds: float | None
    exit_code: int = 0


_FOREVER: Final = Run(None)


def run_of(container: Mapping[str, Any]) -> Run | None:
    """None where nobody can tell."""
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    if words and container.get("command"):
        return _run_of(words)
    # The program of this image waits to be stopped, and takes no arguments of interest.
    name = str(container.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0]
    return _FOREVER if name == "pause" else None


@lru_cache(maxsize=1024)
def _run_of(words: tuple[str, ...]) -> Run | None:
    if _base(words[0]) not in _SHELLS:
        return _program(words)
    if len(words) > 2 and words[1] in _SCRIPT_FLAGS:
        return _script(words[2], stops="e" in words[1])
    return None


def _script(text: str, *, stops: bool) -> Run | None:
    """`stops`: the first failure ends it, as with `set -e`."""
    seconds, status, operator = 0.0, 0, ";"
    parts = _SEPARATOR.split(text.strip())
    for statement, following in zip(parts[::2], [*parts[1::2], ";"], strict=True):
        skipped = (operator == "&&" and status != 0) or (operator == "||" and status == 0)
        operator = following
        words = _words(statement)
        if words is None:
            return None
        if skipped or not words:
            continue
        if words[0] == "exit":
            if len(words) == 1:
                return Run(seconds, status)
            return Run(seconds, int(words[1]) % 256) if _EXIT_CODE.fullmatch(words[1]) else None
        found = _program(words[1:] if words[0] == "exec" and len(words) > 1 else words)
        if found is None or found.seconds is None:
            return found
        seconds, status = seconds + found.seconds, found.exit_code
        if words[0] == "exec" or (stops and status != 0 and operator not in ("&&", "||")):
            return Run(seconds, status)
    return Run(seconds, status)


def _words(statement: str) -> tuple[str, ...] | None:
    """None for what isn't a program with arguments."""
    if _SYNTAX.search(statement):
        return None
    try:
        return tuple(shlex.split(statement, comments=True))
    except ValueError:  # a quotation that doesn't end
        return None


def _program(words: Sequence[str]) -> Run | None:
    match _base(words[0]):
        case "true" | ":" | "echo" | "printf":
            return Run(0.0)
        case "false":
            return Run(0.0, 1)
        case "sleep":
            return _sleep(words[1:])
    return None


def _sleep(durations: Sequence[str]) -> Run | None:
    """Several add up."""
    if not durations:
        return Run(0.0, 1)
    seconds = 0.0
    for text in durations:
        if text in ("infinity", "inf"):
            return _FOREVER
        match = _DURATION.fullmatch(text)
        if match is None:
            return None
        seconds += float(match[1]) * _UNITS[match[2]]
    return Run(seconds)


def _base(program: str) -> str:
    return program.rpartition("/")[2]
