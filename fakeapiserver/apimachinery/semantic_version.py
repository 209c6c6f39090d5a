"""Versions as semver.org has them: what is one, and which is newer.

Upstream: github.com/blang/semver/v4 (Parse, Compare).
"""

import re
from typing import Final

from fakeapiserver.apimachinery.go.strconv import parse_uint

Version = tuple[int, int, int, tuple[tuple[int, int, str], ...]]

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_PRE_RELEASE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = r"[0-9a-zA-Z-]+"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PRE_RELEASE}(?:\.{_PRE_RELEASE})*))?(?:\+{_BUILD}(?:\.{_BUILD})*)?"
)
# After every pre-release of a version.
_RELEASE: Final = ((2, 0, ""),)

ZERO: Final[Version] = (0, 0, 0, _RELEASE)


def parse(text: str) -> Version | None:
    """Returns a value that sorts as versions do, regardless of the build; None for an invalid version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    before = match[4]
    try:
        major, minor, patch = (parse_uint(match[i]) for i in (1, 2, 3))
        return (major, minor, patch, _RELEASE if before is None else tuple(map(_part, before.split("."))))
    except ValueError:
        return None


def _part(text: str) -> tuple[int, int, str]:
    """Numbers come before words."""
    return (0, parse_uint(text), "") if text.isdigit() else (1, 0, text)
