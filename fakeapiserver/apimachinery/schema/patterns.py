"""Patterns are Go's regular expressions (RE2): what matches, and Go's words for malformed ones.

Upstream: Go's regexp/syntax/parse.go
"""

import re
import sys
from functools import lru_cache
from typing import Any, Final

from fakeapiserver.apimachinery.allowance import spend

# Go writes names of groups in either way, RE2 only with a P.
_NAMED: Final = re.compile(r"(?<!\\)\(\?<([A-Za-z_0-9]+)>")
# A single byte, which RE2 matches and Go doesn't.
_ONE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^CQ])*\\C", re.S)
# RE2's errors for patterns -> Go's, where they differ.
_PATTERN_PROBLEMS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


# Characters of the longest pattern, and the parts of a pattern that may be left out, each as often as it is repeated. RE2 compiles in time
# that is quadratic in these, and lets no other thread run: 3,000 take 60 ms, 50,000 take 12 s.
_LONGEST: Final = 64 * 1024
_MOST_OPTIONS: Final = 3_000
_TOO_LARGE: Final = b"expression too large: "
# The largest product of a text's characters and a program's instructions: where RE2 finds no automaton that fits into its memory, it takes
# 3 ns for each, and lets no other thread run meanwhile.
_MOST_STEPS: Final = 16_000_000
_STEPS_OF_A_UNIT: Final = 20
# The cost of the import of RE2, in the unit of `spend`: a request that needs it first leaves the event loop.
_IMPORT_COST: Final = 1_000_000
# Repetitions of more than eight digits, which Go refuses, and RE2 reads as text.
_LONG_NUMBER: Final = re.compile(r"[{,][1-9]\d{8}")
_PIECE: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\{(\d+)(,?)(\d*)\}|\(\??|.", re.S
)


def _options(pattern: str) -> int:
    """Returns how many parts of the compiled pattern may be left out, for an invalid pattern any number."""
    groups, last = [0], 0  # the counts of the open groups, and the count of the part that a quantifier would repeat
    for piece in _PIECE.finditer(pattern):
        text = piece[0]
        if text[0] == "(":
            groups.append(0)
            last = 0
        elif text == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif text in "?*":
            groups[-1] += 1
            last += 1
        elif piece[1]:
            least = min(int(piece[1]), 1000) if len(piece[1]) < 5 else 1000
            most = (int(piece[3]) if len(piece[3]) < 5 else 1000) if piece[3] else least + 1 if piece[2] else least
            more = last * (most - 1) + max(most - least, 0)
            groups[-1] += more
            last += more
        else:
            last = 0
        if groups[-1] > _MOST_OPTIONS:
            return groups[-1]
    return sum(groups)


def _endless_repetition(pattern: str) -> str:
    """Returns the first repetition with a number of more than eight digits; empty if no repetition has one."""
    if not _LONG_NUMBER.search(pattern):
        return ""
    return next((piece[0] for piece in _PIECE.finditer(pattern) if piece[1] and _LONG_NUMBER.search(piece[0])), "")


class TextTooLong(ValueError):
    """Raised where a pattern could take too long to match a text."""


def check_length(compiled: Any, text: str) -> None:
    """Counts the effort of matching a text. Raises TextTooLong."""
    steps = len(text) * compiled.programsize
    if steps > _MOST_STEPS:
        raise TextTooLong(f"{len(text)} characters are too many for a pattern of {compiled.programsize} instructions")
    spend(steps // _STEPS_OF_A_UNIT)


def matches(pattern: str, text: str) -> bool:
    """Reports whether a part of the text matches the pattern. Raises re2.error and TextTooLong."""
    compiled = compile_pattern(pattern)
    check_length(compiled, text)
    return compiled.search(text) is not None


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str, *, captures: bool = False) -> Any:
    """Compiles a pattern; its `search` matches texts, slower if `captures`, the texts of its groups. Raises re2.error."""
    if "re2" not in sys.modules:
        spend(_IMPORT_COST)
    import re2  # type: ignore[import-untyped]  # heavy, and only schemas with patterns need it

    if endless := _endless_repetition(pattern):
        raise re2.error(b"invalid repetition size: " + endless.encode())
    if len(pattern) > _LONGEST or _options(pattern) > _MOST_OPTIONS:
        raise re2.error(_TOO_LARGE + pattern.encode())
    if _ONE_BYTE.match(pattern):
        raise re2.error(rb"invalid escape sequence: \C")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    return re2.compile(_NAMED.sub(r"(?P<\1>", pattern), options)


def pattern_problem(pattern: str) -> str:
    """Go's words for a malformed pattern, empty for a good one."""
    import re2

    try:
        compile_pattern(pattern)
    except re2.error as error:
        text = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
        problem, _, piece = text.partition(": ")
        if piece.startswith("(?<"):
            # Go takes every (?< for the beginning of a name.
            rest = pattern[pattern.index(piece) :]
            problem, piece = "invalid named capture", rest[: rest.find(">") + 1] or rest
        elif piece not in pattern:
            piece = piece.replace("(?P<", "(?<")
        return f"error parsing regexp: {_PATTERN_PROBLEMS.get(problem, problem)}: `{piece}`"
    return ""
