"""In which version each API server stores a resource.

Upstream: pkg/registry/apiserverinternal/storageversion/strategy.go, pkg/apis/apiserverinternal/validation/validation.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import UNSET, age

_STATUS: Final = Path("status")
_VERSIONS: Final = _STATUS.child("storageVersions")
_SHOWN: Final = 3
_NO_COMMON: Final = (
    "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported "
    "versions yet"
)
_API_VERSION: Final = (
    "an apiVersion is "
    + names.regex_error(
        "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character",
        "[a-z]([-a-z0-9]*[a-z0-9])?",
        *("my-name", "abc-123"),
    )
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
)


def storage_version_name(name: str, prefix: bool) -> list[str]:
    """`apps.deployments`."""
    group, dot, resource = name.rpartition(".")
    if not dot:
        return ["name must be in the form of <group>.<resource>"]
    errors = [f"the group segment {problem}" for problem in names.is_dns1123_subdomain(group)]
    return errors + [f"the resource segment {problem}" for problem in names.is_dns1035_label(resource)]


class StorageVersionStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status = obj.get("status") or {}
        servers = status.get("storageVersions") or ()
        errors: ErrorList = []
        known: set[str] = set()
        for i, server in enumerate(servers):
            name = server.get("apiServerID", "")
            if name in known:
                errors.append(field.duplicate(_VERSIONS.index(i).child("apiServerID"), name))
            known.add(name)
            errors += _server_errors(server, _VERSIONS.index(i))
        errors += _common_errors(servers, status.get("commonEncodingVersion"))
        return errors + _condition_errors(status.get("conditions") or ())

    def table_row(self, obj: Object, now: float) -> Cells:
        status = obj.get("status") or {}
        servers = status.get("storageVersions") or ()
        servers_cell = ",".join(
            f"{row.get('apiServerID', '')}={row.get('encodingVersion', '')}" for row in servers[:_SHOWN]
        )
        servers_cell = servers_cell or UNSET
        if len(servers) > _SHOWN:
            servers_cell += f" + {len(servers) - _SHOWN} more..."
        return [metadata(obj).get("name", ""), status.get("commonEncodingVersion", UNSET), servers_cell, age(obj, now)]


def _server_errors(server: Object, path: Path) -> ErrorList:
    encodes, decodes = server.get("encodingVersion", ""), server.get("decodableVersions")
    errors = name_errors(server.get("apiServerID", ""), names.is_dns1123_subdomain, path.child("apiServerID"))
    errors += _api_version_errors(encodes, path.child("encodingVersion"))
    for i, version in enumerate(decodes or ()):
        errors += _api_version_errors(version, path.child("decodableVersions").index(i))
    if encodes not in (decodes or ()):
        detail = f"decodableVersions must include encodingVersion {encodes}"
        errors.append(field.invalid(path.child("decodableVersions"), decodes, detail))
    for i, version in enumerate(server.get("servedVersions") or ()):
        at = path.child("servedVersions").index(i)
        errors += _api_version_errors(version, at)
        if version not in (decodes or ()):
            listed = f"[{' '.join(decodes or ())}]"
            detail = f"individual served version : {version} must be included in decodableVersions : {listed}"
            errors.append(field.invalid(at, version, detail))
    return errors


def _common_errors(servers: Sequence[Object], said: str | None) -> ErrorList:
    """The errors in commonEncodingVersion, which must be the version that all servers encode in, if they agree."""
    encoding_versions = {server.get("encodingVersion", "") for server in servers}
    common, path = (
        encoding_versions.pop() if len(encoding_versions) == 1 else None,
        _STATUS.child("commonEncodingVersion"),
    )
    if common == said:
        return []
    if common is None:
        return [field.invalid(path, said, _NO_COMMON)]
    if said is None:
        return [field.invalid(path, None, f"the common encoding version is {common}")]
    return [field.invalid(path, said, f"the actual common encoding version is {common}")]


def _condition_errors(conditions: Sequence[Object]) -> ErrorList:
    """The errors in conditions, whose field upstream doesn't name."""
    errors, seen = ErrorList(), dict[str, int]()
    for i, condition in enumerate(conditions):
        kind, path = condition.get("type", ""), _STATUS.index(i)
        if kind in seen:
            detail = f"the type of the condition is not unique, it also appears in conditions[{seen[kind]}]"
            errors.append(field.invalid(path.child("type"), kind, detail))
        seen[kind] = i
        for name in ("type", "status"):
            errors += name_errors(condition.get(name, ""), names.is_qualified_name, path.child(name))
        errors += [field.required(path.child(name)) for name in ("reason", "message") if not condition.get(name)]
    return errors


def _api_version_errors(version: str, path: Path) -> ErrorList:
    problems = _api_version_problems(version)
    return [field.invalid(path, version, ",".join(problems))] if problems else []


def _api_version_problems(api_version: str) -> list[str]:
    group, slash, version = api_version.rpartition("/")
    if "/" in group:
        return [_API_VERSION]
    problems: list[str] = []
    if slash and not group:
        problems.append("group part: must be non-empty")
    elif slash:
        problems += [f"group part: {problem}" for problem in names.is_dns1123_subdomain(group)]
    if not version:
        return [*problems, "version part: must be non-empty"]
    return problems + [f"version part: {problem}" for problem in names.is_dns1035_label(version)]
