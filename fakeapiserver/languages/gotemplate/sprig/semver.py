"""Semantic versions and their constraints."""

import re
from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.languages.gotemplate.values import TemplateError, Version

_VERSION: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")


def parse(text: str) -> Version:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise TemplateError("invalid semantic version")
    major, minor, patch = (int(part or 0) for part in match.groups()[:3])
    return Version(
        Major=major, Minor=minor, Patch=patch, Prerelease=match[4] or "", Metadata=match[5] or "", Original=text
    )


def _semver_key(version: Mapping[str, Any]) -> tuple[Any, ...]:
    pre = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in version["Prerelease"].split(".") if part]
    return (version["Major"], version["Minor"], version["Patch"], not pre, pre)


def compare(constraint: str, text: str) -> bool:
    version = parse(text)
    return any(
        all(_satisfies(version, part) for part in re.findall(r"(?:[=!<>~^]+\s*)?[vV]?[\dxX*][^\s,]*", choice))
        for choice in constraint.split("||")
    )


def _satisfies(version: Mapping[str, Any], constraint: str) -> bool:
    match = re.fullmatch(
        r"([=!<>~^]*)\s*v?([\dxX*]+)(?:\.([\dxX*]+))?(?:\.([\dxX*]+))?(-[\w.-]+)?(?:\+.*)?", constraint
    )
    if match is None:
        raise TemplateError(f"improper constraint: {constraint}")
    operator, *parts, pre = match.groups()
    numbers = [int(part) if part and part.isdigit() else None for part in parts]
    known = numbers[: numbers.index(None)] if None in numbers else numbers
    wanted = parse(".".join(str(part or 0) for part in numbers) + (pre or ""))
    if version["Prerelease"] and not pre:
        return False
    low, this = _semver_key(wanted), _semver_key(version)
    has = [version["Major"], version["Minor"], version["Patch"]]
    same = has[: len(known)] == known
    if operator in ("", "="):
        return this == low if len(known) == 3 else same
    if operator == "!=":
        return this != low if len(known) == 3 else not same
    if operator in (">", "<="):
        above = this > low and not (len(known) < 3 and same)
        return above if operator == ">" else not above
    if operator in (">=", "=>", "<", "=<"):
        return this >= low if operator in (">=", "=>") else this < low if operator == "<" else this <= low
    if operator in ("~", "~>"):
        return this >= low and has[: min(2, len(known))] == known[:2]
    if operator == "^":
        fixed = next((at for at, part in enumerate(known) if part), len(known) - 1)
        return this >= low and has[: fixed + 1] == known[: fixed + 1]
    raise TemplateError(f"improper constraint: {constraint}")
