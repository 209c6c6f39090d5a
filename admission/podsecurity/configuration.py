"""PodSecurityConfiguration: what holds where no label says otherwise, and who is exempt.

Upstream: k8s.io/pod-security-admission/admission/api/{v1/defaults.go,validation/validation.go}.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from fakeapiserver.admission.interfaces import InitializationError
from fakeapiserver.admission.podsecurity.levels import LevelVersion, Policy, parse_level, parse_version
from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, duplicate, invalid
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind

_MODES: Final = ("enforce", "audit", "warn")
_KIND: Final = ConfigKind(
    "PodSecurityConfiguration",
    tuple(f"pod-security.admission.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1")),
    {
        "PodSecurityConfiguration": {"defaults": "PodSecurityDefaults", "exemptions": "PodSecurityExemptions"},
        "PodSecurityDefaults": {field: "string" for mode in _MODES for field in (mode, f"{mode}-version")},
        "PodSecurityExemptions": dict.fromkeys(("usernames", "namespaces", "runtimeClasses"), "[]string"),
    },
)
_T = TypeVar("_T")
_EVERYTHING_GOES: Final = Policy()
_EXEMPTIONS: Final = Path("exemptions")


class Configuration(Struct, frozen=True):
    defaults: Policy = _EVERYTHING_GOES
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()
    usernames: frozenset[str] = frozenset()


def read_configuration(document: Object | None) -> Configuration:
    """ValueError with upstream's complaints: all about the defaults, or else all about the exemptions."""
    if document is None:
        return Configuration()
    document = _KIND.read(document)
    defaults, problems = _policy(document.get("defaults") or {})
    if problems:
        raise InitializationError(f"PodSecurity configuration error: {_aggregate(problems)}")
    exemptions, errors = document.get("exemptions") or {}, ErrorList()
    exempt = {
        field: _exempt(exemptions.get(field) or (), _EXEMPTIONS.child(field), problems_of, errors)
        for field, problems_of in _CHECKS.items()
    }
    if errors:
        raise InitializationError(f"PodSecurity invalid: {_aggregate([str(error) for error in errors])}")
    return Configuration(defaults, exempt["namespaces"], exempt["runtimeClasses"], exempt["usernames"])


def _aggregate(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _policy(defaults: Object) -> tuple[Policy, list[str]]:
    problems = list[str]()

    def parsed(field: str, default: str, parse: Callable[[str], _T]) -> _T:
        try:
            return parse(defaults.get(field) or default)
        except ValueError as error:
            problems.append(f"{field}: {error}")
            return parse(default)

    modes = {
        mode: LevelVersion(parsed(mode, "privileged", parse_level), parsed(f"{mode}-version", "latest", parse_version))
        for mode in _MODES
    }
    return Policy(**modes), problems


def _exempt(
    values: Iterable[str], path: Path, problems_of: Callable[[str], Sequence[str]], errors: ErrorList
) -> frozenset[str]:
    seen = set[str]()
    for i, value in enumerate(values):
        if problems := problems_of(value):
            errors.append(invalid(path.index(i), value, ", ".join(problems)))
        elif value in seen:
            errors.append(duplicate(path.index(i), value))
        seen.add(value)
    return frozenset(seen)


_CHECKS: Final[dict[str, Callable[[str], Sequence[str]]]] = {
    "namespaces": names.is_dns1123_label,
    "runtimeClasses": names.is_dns1123_subdomain,
    "usernames": lambda name: () if name else ("username must not be empty",),
}
