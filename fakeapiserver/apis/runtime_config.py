"""--runtime-config: the groups, versions and resources that are served in addition to the defaults, or not served.

Upstream: k8s.io/apiserver/pkg/server/resourceconfig/helpers.go, k8s.io/apiserver/pkg/server/storage/resource_config.go
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_bool
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionResource
from fakeapiserver.apis import removed_versions

# In this order, whatever the flag's: the later ones say more.
_LEVELS: Final[Mapping[str, re.Pattern[str]]] = {
    "api/all": re.compile(""),
    "api/ga": re.compile(r"v\d+$"),
    "api/beta": re.compile(r"v\d+beta\d+$"),
    "api/alpha": re.compile(r"v\d+alpha\d+$"),
}
# Keys without an effect on which of the present versions are served.
_OTHERS: Final = frozenset(("api/legacy", removed_versions.SWITCH))
# The ways to say the legacy group, whose resources go together.
_LEGACY: Final = re.compile(r"(api/)?v1($|/)")


def serves_removed(switches: Mapping[str, str]) -> bool:
    """Reports whether the versions that Kubernetes has removed are served again. Raises ValueError for an invalid value."""
    key = removed_versions.SWITCH
    return key in switches and _boolean(key, switches[key])


class RuntimeConfig(Struct, frozen=True):
    """The switches for versions and single resources; the rest is as by default. Created by `runtime_config`."""

    versions: Mapping[GroupVersion, bool] = field(default_factory=dict)
    resources: Mapping[GroupVersionResource, bool] = field(default_factory=dict)

    def enabled(self, resource: GroupVersionResource, by_default: bool) -> bool:
        """Reports whether a resource is served, if its feature gates are on too."""
        said = self.resources.get(resource)
        if said is None:
            said = self.versions.get(resource.group_version)
        return by_default if said is None else said


DEFAULT_RESOURCES: Final = RuntimeConfig()


def runtime_config(switches: Mapping[str, str], versions: Collection[GroupVersion]) -> RuntimeConfig:
    """Reads `{"api/all": "true", "batch/v1": "false", "resource.k8s.io/v1alpha3/devicetaintrules": ""}`, where nothing means true.

    `versions` are all that there are. Raises ValueError in upstream's words for what can't be meant."""
    if not switches:
        return DEFAULT_RESOURCES
    if switches == {"api/all": "false"}:
        raise ValueError("invalid runtime-config with only api/all=false")
    switches = {"/v1" if _LEGACY.match(key) else key: value for key, value in switches.items() if key not in _OTHERS}
    named = {key: _named(key) for key in switches if key not in _LEVELS}
    groups = {version.group for version in versions}
    if unknown := sorted({str(version) for version, _ in named.values() if version.group not in groups}):
        raise ValueError(f"unknown api groups {','.join(unknown)}")
    said: dict[GroupVersion, bool] = {}
    for level, pattern in _LEVELS.items():
        if level in switches:
            if switches[level] not in ("true", "false"):
                raise ValueError(f"invalid value {level}={switches[level]}")
            said |= dict.fromkeys(filter(_matches(pattern), versions), switches[level] == "true")
    resources: dict[GroupVersionResource, bool] = {}
    for key, (version, resource) in named.items():
        if version not in versions:
            raise ValueError(f"group version {version} that has not been registered")
        if resource != resource.lower():
            what = "group/version/resource and resource is always lowercase plural"
            raise ValueError(f"invalid key {key}: {what}, not {go_quote(resource)}")
        if resource:
            resources[GroupVersionResource(*version, resource)] = _boolean(key, switches[key])
        else:
            said[version] = _boolean(key, switches[key])
    return RuntimeConfig(said, resources)


def _matches(pattern: re.Pattern[str]) -> Callable[[GroupVersion], bool]:
    return lambda version: bool(pattern.match(version.version))


def _named(key: str) -> tuple[GroupVersion, str]:
    """(the version, the resource or nothing) that a key is about."""
    parts = key.split("/")
    if len(parts) not in (2, 3):
        raise ValueError(f"runtime-config invalid key {key}")
    return GroupVersion(parts[0], parts[1]), parts[2] if len(parts) == 3 else ""


def _boolean(key: str, value: str) -> bool:
    try:
        return not value or parse_bool(value)
    except ValueError as problem:
        raise ValueError(f"invalid value of {key}: {value}, err: {problem}") from None
