"""Emulation of an older minor version: its feature gates and its resources, by the rules of the version that emulates.

What changed without a gate (messages, columns, OpenAPI) stays as the version itself has it.

Upstream: k8s.io/component-base/compatibility/registry.go, KEP-4330. versions/<version>/emulations.json is recorded from real servers.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apis.recorded import minor_version, read_table, release_of

_COMPONENT: Final = "kube"
_VERSION: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})(\.[0-9]+)*")
# A version emulates so many minor versions before it.
_SPAN: Final = 3


class Emulation(Struct, frozen=True):
    """`version` is the emulated one, such as v1.35, and `minimum` the oldest one that stored objects must suit; both are "" if nothing is
    emulated."""

    version: str = ""
    minimum: str = ""


NO_EMULATION: Final = Emulation()


def emulation(version: str, emulated: str, minimum: str) -> Emulation:
    """Reads --emulated-version and --min-compatibility-version of a server of `version`, such as `kube=1.35` or `1.35`; "" is the default.

    Raises ValueError in upstream's words."""
    version = minor_version(version)
    own = _pair(version)
    floor = own[0], own[1] - _SPAN
    shown = _read(emulated) or own
    least = _read(minimum) or max(floor, (shown[0], shown[1] - 1))
    errors = []
    if not floor <= shown <= own:
        errors.append(f"emulation version {_text(shown)} is not between [{_text(floor)}, {_text(own)}.0]")
    if not floor <= least <= shown:
        errors.append(f"minCompatibilityVersion version {_text(least)} is not between [{_text(floor)}, {_text(shown)}]")
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    if not emulated and not minimum:
        return NO_EMULATION
    name = f"v{_text(shown)}"
    if shown != own and name not in _recorded(version):
        known = ", ".join(_recorded(version)) or "no other version"
        raise ValueError(
            f"{release_of(version)} emulates {known} here: --kubernetes-version={_text(shown)} serves that version itself"
        )
    return Emulation(name, f"v{_text(least)}")


def recorded_gates(version: str, emulated: str) -> Mapping[str, Mapping[str, Any]]:
    """The gates that are otherwise than the version itself has them: their default and stage."""
    gates: Mapping[str, Mapping[str, Any]] = _of(version, emulated)["gates"]
    return gates


def later_gates(version: str, emulated: str) -> frozenset[str]:
    """The gates that came after the emulated version."""
    return frozenset(_of(version, emulated)["later"])


def absent(version: str, emulated: str) -> frozenset[str]:
    """The resources (group/version/resource) that the version serves by default, and the emulated one doesn't."""
    return frozenset(_of(version, emulated)["without"])


def emulated_facts(facts: Mapping[str, Any], emulated: Emulation) -> Mapping[str, Any]:
    """The recorded facts of a version (paths.json) as it says them of itself while it emulates: in /version and in OpenAPI."""
    if not emulated.version:
        return facts
    document = facts["openapiInfo"]
    info = {**document["info"], "version": emulated.version[1:]}
    return {**facts, "version": _version(facts["version"], emulated), "openapiInfo": {**document, "info": info}}


def _version(info: Mapping[str, str], emulated: Emulation) -> dict[str, str]:
    minors = {"emulationMinor": _pair(emulated.version)[1], "minCompatibilityMinor": _pair(emulated.minimum)[1]}
    return {**info, **{name: str(minor) for name, minor in minors.items() if name in info}}


def _of(version: str, emulated: str) -> Mapping[str, Any]:
    nothing: Mapping[str, Any] = {"gates": {}, "later": (), "without": ()}
    return nothing if emulated in ("", version) else _recorded(version)[emulated]


def _read(text: str) -> tuple[int, int] | None:
    """`1.35` or `kube=1.35`, once; None for nothing. Raises ValueError."""
    known, result = "", None
    for item in filter(None, map(str.strip, text.split(","))):
        component, equals, version = item.rpartition("=")
        named = item if equals else f"{_COMPONENT}={item}"
        if equals and component != _COMPONENT:
            raise ValueError(f"component not registered: {component}")
        if known:
            raise ValueError(f"duplicate version flag, {known} and {named}")
        match = _VERSION.fullmatch(version)
        if match is None:
            raise ValueError(f"could not parse {go_quote(version)} as version")
        if match[3]:
            raise ValueError(f"patch version not allowed, got: {named}")
        known, result = named, (int(match[1]), int(match[2]))
    return result


def _pair(version: str) -> tuple[int, int]:
    major, minor = version.removeprefix("v").split(".")
    return int(major), int(minor)


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


@lru_cache(maxsize=8)
def _recorded(version: str) -> Mapping[str, Mapping[str, Any]]:
    """The emulations of a version, by the emulated one; none if they aren't recorded."""
    try:
        tables: Mapping[str, Mapping[str, Any]] = read_table(version, "emulations.json")
    except FileNotFoundError:
        return {}
    return tables
