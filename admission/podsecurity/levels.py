"""The level of the Pod Security Standards in a namespace, from its labels.

Upstream: k8s.io/pod-security-admission/api/helpers.go.
"""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from fakeapiserver.apimachinery.field import ErrorList, Path, invalid

LEVELS: Final = ("privileged", "baseline", "restricted")
LATEST: Final = sys.maxsize
_T = TypeVar("_T")
_PREFIX: Final = "pod-security.kubernetes.io/"
_LABELS: Final = Path("metadata").child("labels")
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")


class LevelVersion(NamedTuple):
    """`version` is the minor version of the rules."""

    level: str
    version: int

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.version == LATEST else f'v1.{self.version}'}"

    @property
    def strictness(self) -> int:
        return LEVELS.index(self.level)

    def equivalent(self, other: "LevelVersion") -> bool:
        return self == other or self.level == other.level == "privileged"


PRIVILEGED: Final = LevelVersion("privileged", LATEST)


class Policy(Struct, frozen=True):
    enforce: LevelVersion = PRIVILEGED
    audit: LevelVersion = PRIVILEGED
    warn: LevelVersion = PRIVILEGED

    @property
    def fully_privileged(self) -> bool:
        return all(mode.level == "privileged" for mode in (self.enforce, self.audit, self.warn))

    def equivalent(self, other: "Policy") -> bool:
        return (
            self.enforce.equivalent(other.enforce)
            and self.audit.equivalent(other.audit)
            and self.warn.equivalent(other.warn)
        )


def parse_level(text: str) -> str:
    """ValueError with upstream's sentence."""
    if text not in LEVELS:
        raise ValueError(f"must be one of {', '.join(LEVELS)}")
    return text


def parse_version(text: str) -> int:
    """ValueError with upstream's sentence."""
    if text == "latest":
        return LATEST
    match = _VERSION.fullmatch(text)
    if match is None or int(match[1]) >= LATEST:
        raise ValueError('must be "latest" or "v1.x"')
    return int(match[1])


def policy_to_evaluate(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, ErrorList]:
    """The policy, and what is wrong with the labels: then nothing less than `restricted` is enforced, and nothing is said."""
    errors: ErrorList = []
    if not any(label.startswith(_PREFIX) for label in labels):  # most namespaces, and every pod's creation asks
        return defaults, errors

    def read(label: str, parse: Callable[[str], _T], default: _T, fallback: _T) -> tuple[_T, bool]:
        """The label's value and whether it is a good one."""
        text = labels.get(_PREFIX + label)
        if text is None:
            return default, False
        try:
            return parse(text), True
        except ValueError as error:
            errors.append(invalid(_LABELS.key(_PREFIX + label), text, str(error)))
            return fallback, False

    def mode(name: str, default: LevelVersion, fallback: str) -> tuple[LevelVersion, bool]:
        level, good = read(name, parse_level, default.level, fallback)
        version, _ = read(f"{name}-version", parse_version, default.version, LATEST)
        return LevelVersion(level, version), good

    enforce, has_enforce = mode("enforce", defaults.enforce, "restricted")
    audit, _ = mode("audit", defaults.audit, "privileged")
    warn, _ = mode("warn", defaults.warn, "privileged")
    # Who asks for more to be enforced is warned of it too.
    if has_enforce and _PREFIX + "warn" not in labels and enforce.strictness > warn.strictness:
        own_version = _PREFIX + "warn-version" in labels
        warn = LevelVersion(enforce.level, warn.version if own_version else enforce.version)
    return Policy(enforce, audit, warn), errors


def labelled_modes(labels: Mapping[str, str], policy: Policy) -> str:
    """The modes that labels set to more than `privileged`: `enforce=baseline:latest, warn=restricted:v1.30`."""
    modes = (("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn))
    return ", ".join(
        f"{name}={mode}"
        for name, mode in modes
        if mode.level != "privileged" and (_PREFIX + name in labels or f"{_PREFIX}{name}-version" in labels)
    )
