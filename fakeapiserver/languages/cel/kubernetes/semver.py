"""Semantic versions (upstream: k8s.io/apiserver/pkg/cel/library/semverlib.go)."""

import re
from functools import total_ordering
from typing import Any, ClassVar, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_uint
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.kubernetes.shared import Function, is_parsable, order
from fakeapiserver.languages.cel.types import Type, struct
from fakeapiserver.languages.cel.values import int64


@total_ordering
class Semver(Struct, frozen=True):
    """A semantic version. `build` does not count in the order, but versions that differ in it are equal."""

    cel_type: ClassVar[Type] = struct("kubernetes.Semver")
    numbers: tuple[int, int, int]
    pre: tuple[int | str, ...]

    def _key(self) -> tuple[Any, ...]:
        return (self.numbers, not self.pre, [(isinstance(p, str), p) for p in self.pre])

    def __lt__(self, other: "Semver") -> bool:
        return self._key() < other._key()


_PRE: Final = re.compile(r"[0-9A-Za-z-]+")


def _semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _version_number(parts[0], "Major"), _version_number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, pre = rest.partition("-")
    patch = _version_number(patch_text, "Patch")
    identifiers = tuple(map(_pre_release, pre.split("."))) if dash else ()
    for piece in build.split(".") if plus else ():
        if not piece:
            raise CelError("Build meta data is empty")
        if not _PRE.fullmatch(piece):
            raise CelError(f"Invalid character(s) found in build meta data {go_quote(piece)}")
    return Semver((major, minor, patch), identifiers)


def _version_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()) and text:
        raise CelError(f"Invalid character(s) found in {name.lower()} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name} number must not contain leading zeroes {go_quote(text)}")
    try:
        return parse_uint(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def _pre_release(text: str) -> int | str:
    if not text:
        raise CelError("Prerelease is empty")
    if text.isascii() and text.isdigit():
        if len(text) > 1 and text[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}")
        try:
            return parse_uint(text)
        except ValueError as error:
            raise CelError(str(error)) from None
    if not _PRE.fullmatch(text):
        raise CelError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def _without_zeros(part: str) -> str:
    """Removes leading zeros; one stays before a letter and at the end."""
    rest = part.lstrip("0")
    return rest if rest[:1].isascii() and rest[:1].isdigit() else f"0{rest}"


def _normalized(text: str) -> str:
    """Without a leading v and zeros, filled up to three numbers."""
    parts = [_without_zeros(part) if len(part) > 1 else part for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3] if len(parts) < 3 else parts)


VERSIONS: Final[dict[str, Function]] = {
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": is_parsable(_semver),
    "is_semver_string_bool": is_parsable(_semver),
    "semver_major": lambda a: int64(a.numbers[0]),
    "semver_minor": lambda a: int64(a.numbers[1]),
    "semver_patch": lambda a: int64(a.numbers[2]),
    "semver_is_greater_than": lambda a, b: a > b,
    "semver_is_less_than": lambda a, b: a < b,
    "semver_compare_to": order,
}
