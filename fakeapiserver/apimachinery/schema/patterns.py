"""Patterns are Go's regular expressions (RE2): what matches, and Go's words for malformed ones.

Upstream: Go's regexp/syntax/parse.go
"""

import re
from functools import cache
from typing import Any, Final

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


@cache
def compile_pattern(pattern: str) -> Any:
    """Compiles a pattern; its `search` matches texts. Raises re2.error."""
    import re2  # type: ignore[import-untyped]  # heavy, and only schemas with patterns need it

    if _ONE_BYTE.match(pattern):
        raise re2.error(rb"invalid escape sequence: \C")
    options = re2.Options()
    options.log_errors = False
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
