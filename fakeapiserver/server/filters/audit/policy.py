"""The audit policy: which requests are recorded, and at which level.

Upstream: k8s.io/apiserver/pkg/audit/policy/{reader,checker}.go, pkg/apis/audit/{v1/types,validation/validation}.go.
"""

import logging
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.serializer import type_meta
from fakeapiserver.auth.interfaces import Attributes

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.serializer.type_meta import Document

log = logging.getLogger(__name__)

API_VERSION: Final = "audit.k8s.io/v1"
STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


class Level(IntEnum):
    """The levels; each records what the one before does, and more."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def text(self) -> str:
        return _LEVELS[self]


_LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")


class GroupResources(Struct, frozen=True):
    """`pods`, `pods/log`, `*/log`, `pods/*` and `*` of a group, or (empty) all of it; `names` narrows them down."""

    group: str = ""
    resources: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()

    def matches(self, attributes: Attributes) -> bool:
        if self.group not in (attributes.api_group, "*"):
            return False
        if not self.resources:
            return True
        if self.names and attributes.name not in self.names:
            return False
        resource, subresource = attributes.resource, attributes.subresource
        called = {"*", f"{resource}/*", f"{resource}/{subresource}" if subresource else resource}
        if subresource:
            called.add(f"*/{subresource}")
        return not called.isdisjoint(self.resources)


class RequestAuditConfig(Struct, frozen=True):
    """A rule's settings for the requests that it matches."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


class PolicyRule(Struct, frozen=True):
    """A rule of the policy. Empty fields match everything."""

    config: RequestAuditConfig
    users: frozenset[str] = frozenset()
    user_groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[GroupResources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    non_resource_urls: tuple[str, ...] = ()

    def matches(self, attributes: Attributes) -> bool:
        user = attributes.user
        if (
            (self.users and user.name not in self.users)
            or (self.user_groups and self.user_groups.isdisjoint(user.groups))
            or (self.verbs and attributes.verb not in self.verbs)
        ):
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(attributes)
        if self.non_resource_urls:
            path = attributes.path
            return not attributes.resource_request and any(_path_matches(path, url) for url in self.non_resource_urls)
        return True

    def _matches_resource(self, attributes: Attributes) -> bool:
        if not attributes.resource_request or (self.namespaces and attributes.namespace not in self.namespaces):
            return False
        return not self.resources or any(resources.matches(attributes) for resources in self.resources)


class Policy(Struct, frozen=True):
    """The first rule that matches decides; without one nothing is recorded."""

    rules: tuple[PolicyRule, ...]
    otherwise: RequestAuditConfig

    def evaluate(self, attributes: Attributes) -> RequestAuditConfig:
        return next((rule.config for rule in self.rules if rule.matches(attributes)), self.otherwise)


def _path_matches(path: str, url: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


# ------------------------------------------------------------------- reading

_ANYTHING: Final[dict[str, Any]] = {}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_DEFINITIONS: Final[dict[str, dict[str, Any]]] = {
    "io.k8s.api.audit.v1.Policy": {
        "type": "object",
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {"type": "object", "additionalProperties": _ANYTHING},
            "rules": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.audit.v1.PolicyRule"}},
            "omitStages": _TEXTS,
            "omitManagedFields": {"type": "boolean"},
        },
    },
    "io.k8s.api.audit.v1.PolicyRule": {
        "type": "object",
        "properties": {
            "level": _TEXT,
            "users": _TEXTS,
            "userGroups": _TEXTS,
            "verbs": _TEXTS,
            "resources": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/io.k8s.api.audit.v1.GroupResources"},
            },
            "namespaces": _TEXTS,
            "nonResourceURLs": _TEXTS,
            "omitStages": _TEXTS,
            "omitManagedFields": {"type": "boolean"},
        },
    },
    "io.k8s.api.audit.v1.GroupResources": {
        "type": "object",
        "properties": {"group": _TEXT, "resources": _TEXTS, "resourceNames": _TEXTS},
    },
}


def load_policy(path: Path) -> Policy:
    """Reads the policy in a file. Raises ValueError in upstream's words for an invalid one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        operation = "read" if isinstance(error, IsADirectoryError) else "open"
        why = f"{operation} {path}: {(error.strerror or str(error)).lower()}"
        raise ValueError(f"loading audit policy file: failed to read file path {go_quote(str(path))}: {why}") from None
    try:
        return read_policy(data)
    except ValueError as error:
        raise ValueError(f"loading audit policy file: {error}: from file {path}") from None


def read_policy(data: bytes) -> Policy:
    """From YAML or JSON. Unknown fields are only logged. ValueError."""
    try:
        document = type_meta.read(data)
        _check_type(document)
        content = document.content
        denied = _denied(content.get("rules"))
        unknown = compile_builtin(_DEFINITIONS, "io.k8s.api.audit.v1.Policy").decode(content)
    except ValueError as error:
        raise ValueError(f"failed decoding: {error}") from None
    if not document.version:
        raise ValueError("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy")
    if unknown:
        why = "strict decoding error: " + ", ".join(unknown)
        log.warning("Audit policy contains errors, falling back to lenient decoding: %s", why)
    if errors := _validated(content):
        raise ValueError(aggregated(errors))
    if not content.get("rules"):
        raise ValueError("loaded illegal policy with 0 rules")
    for rule, is_denied in zip(content["rules"], denied, strict=True):
        if is_denied:
            rule["omitManagedFields"] = False
    return _policy(content)


def _denied(rules: Any) -> list[bool]:
    """Returns which rules say that managed fields are kept: decoding drops a false."""
    rows = rules if isinstance(rules, list) else ()
    return [isinstance(rule, dict) and rule.get("omitManagedFields") is False for rule in rows]


def _check_type(document: "Document") -> None:
    """No kind is a policy's, but a version must be named. ValueError."""
    version, kind = document.version, document.kind or "Policy"
    if not version and kind == "Policy":
        return
    if version == API_VERSION and kind in ("Event", "EventList", "PolicyList"):
        raise ValueError(f"converting (v1.{kind}) to (audit.Policy): unknown conversion")
    if version != API_VERSION or kind != "Policy":
        scheme = 'in scheme "pkg/runtime/scheme.go:111"'
        raise ValueError(f"no kind {go_quote(kind)} is registered for version {go_quote(version)} {scheme}")


def _policy(content: Object) -> Policy:
    stages, omits = frozenset(content.get("omitStages") or ()), bool(content.get("omitManagedFields"))
    rules = tuple(_rule(rule, stages, omits) for rule in content["rules"])
    return Policy(rules, RequestAuditConfig(Level.NONE, stages, omits))


def _rule(rule: Object, stages: frozenset[str], omits: bool) -> PolicyRule:
    own = rule.get("omitManagedFields")
    return PolicyRule(
        RequestAuditConfig(
            Level(_LEVELS.index(rule["level"])),
            stages | frozenset(rule.get("omitStages") or ()),
            omits if own is None else own,
        ),
        frozenset(rule.get("users") or ()),
        frozenset(rule.get("userGroups") or ()),
        frozenset(rule.get("verbs") or ()),
        tuple(
            GroupResources(
                row.get("group") or "", tuple(row.get("resources") or ()), frozenset(row.get("resourceNames") or ())
            )
            for row in rule.get("resources") or ()
        ),
        frozenset(rule.get("namespaces") or ()),
        tuple(rule.get("nonResourceURLs") or ()),
    )


# ----------------------------------------------------------------- validation


def _validated(policy: Object) -> ErrorList:
    errors = ErrorList(_bad_stages(policy.get("omitStages"), field.Path("omitStages")))
    for index, rule in enumerate(policy.get("rules") or ()):
        errors += _bad_rule(rule, field.Path("rules").index(index))
    return errors


def _bad_rule(rule: Object, path: field.Path) -> ErrorList:
    errors, level, urls = ErrorList(), rule.get("level") or "", rule.get("nonResourceURLs") or ()
    if not level:
        errors.append(field.required(path.child("level")))
    elif level not in _LEVELS:
        errors.append(field.not_supported(path.child("level"), level, _LEVELS))
    errors += _bad_urls(urls, path.child("nonResourceURLs"))
    for row in rule.get("resources") or ():
        errors += _bad_resources(row, path.child("resources"))
    errors += _bad_stages(rule.get("omitStages"), path.child("omitStages"))
    if urls and (rule.get("resources") or rule.get("namespaces")):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        errors.append(field.invalid(path.child("nonResourceURLs"), list(urls), detail))
    return errors


def _bad_urls(urls: Sequence[str], path: field.Path) -> ErrorList:
    errors = ErrorList()
    for index, url in enumerate(urls):
        if url != "*" and not url.startswith("/"):
            detail = "non-resource URL rules must begin with a '/' character"
            errors.append(field.invalid(path.index(index), url, detail))
        if "*" in url[:-1]:
            detail = "non-resource URL wildcards '*' must be the final character of the rule"
            errors.append(field.invalid(path.index(index), url, detail))
    return errors


def _bad_resources(row: Object, path: field.Path) -> ErrorList:
    errors, group = ErrorList(), row.get("group") or ""
    if group not in ("", "*") and (problems := names.name_is_dns_subdomain(group, False)):
        errors.append(field.invalid(path.child("group"), group, ",".join(problems)))
    if row.get("resourceNames") and not row.get("resources"):
        detail = "using resourceNames requires at least one resource"
        errors.append(field.invalid(path.child("resourceNames"), row["resourceNames"], detail))
    return errors


def _bad_stages(stages: Sequence[str] | None, path: field.Path) -> ErrorList:
    return ErrorList(
        field.invalid(path.index(index), stage, f"allowed stages are {','.join(STAGES)}")
        for index, stage in enumerate(stages or ())
        if stage not in STAGES
    )
