"""Attribute-based access control: a file with a policy a line.

Upstream: k8s.io/kubernetes/pkg/auth/authorizer/abac/abac.go, pkg/apis/abac/{v0,v1beta1}.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.serializer import type_meta
from fakeapiserver.apimachinery.serializer.component_config import not_registered
from fakeapiserver.apimachinery.serializer.type_meta import boolean_field, object_field, text_field
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo
from fakeapiserver.auth.rules import path_matches
from fakeapiserver.transport.files import read_file

_VERSION: Final = "abac.authorization.kubernetes.io/v1beta1"
_EVERYBODY: Final = "system:authenticated"


class Policy(Struct, frozen=True):
    """A permission. `*` is everything; those of `user` and `group` that are set must match."""

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""

    def is_for(self, user: UserInfo) -> bool:
        if self.user and self.user not in ("*", user.name):
            return False
        if self.group and self.group != "*" and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def matches(self, attributes: Attributes) -> bool:
        if not self.is_for(attributes.user) or (self.readonly and not attributes.is_read_only):
            return False
        if not attributes.resource_request:
            return path_matches(self.non_resource_path, attributes.path)
        return (
            self.namespace in ("*", attributes.namespace)
            and self.resource in ("*", attributes.resource)
            and self.api_group in ("*", attributes.api_group)
        )


class ABAC:
    """Policies in order; the first that matches allows."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = tuple(policies)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if any(policy.matches(attributes) for policy in self._policies):
            return Decision.ALLOW, ""
        return Decision.NO_OPINION, "No policy matched."

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        resources, others = list[dict[str, list[str]]](), list[dict[str, list[str]]]()
        for policy in self._policies:
            if not policy.is_for(user) or policy.namespace not in ("*", namespace):
                continue
            verbs = ["get", "list", "watch"] if policy.readonly else ["*"]
            if policy.resource:
                resources.append({"verbs": verbs, "apiGroups": [policy.api_group], "resources": [policy.resource]})
            if policy.non_resource_path:
                others.append({"verbs": verbs, "nonResourceURLs": [policy.non_resource_path]})
        return resources, others, False, ""


def load_policy_file(path: Path) -> ABAC:
    """ValueError with the line that is no policy; OSError."""
    lines = read_file(path).split(b"\n")
    policies = []
    for number, raw in enumerate(lines, 1):
        text = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if not text.strip() or text.strip().startswith("#"):
            continue
        try:
            policies.append(parse_policy(text))
        except ValueError as error:
            raise ValueError(f"error reading policy file {path}, line {number}: {text}: {error}") from None
    return ABAC(policies)


def parse_policy(text: str) -> Policy:
    """Reads a line in the version that it names, or in the oldest. Raises ValueError in Go's words."""
    document, version, kind, _ = type_meta.read(text.encode())
    if version == _VERSION and kind == "Policy":
        return _policy(object_field(document, "spec", "Go struct field Policy.spec of type v1beta1.PolicySpec"))
    if version == _VERSION and not kind:
        raise ValueError("converting (v1beta1.Policy) to (v0.Policy): unknown conversion")
    if version and kind:
        raise ValueError(not_registered(version, kind))
    return _old_policy(document)


def _policy(spec: dict[str, Any]) -> Policy:
    texts = ("user", "group", "apiGroup", "resource", "namespace", "nonResourcePath")
    place = "Go struct field PolicySpec.spec.{} of type {}"
    user, group, *rest = (text_field(spec, name, place.format(name, "string")) for name in texts)
    if "*" in (user, group):
        user, group = "", _EVERYBODY
    return Policy(user, group, boolean_field(spec, "readonly", place.format("readonly", "bool")), *rest)


def _old_policy(document: dict[str, Any]) -> Policy:
    """Before there were versions, what was left out meant everything."""
    place = "Go struct field Policy.{} of type {}"
    texts = ("user", "group", "namespace", "resource")
    user, group, namespace, resource = (text_field(document, name, place.format(name, "string")) for name in texts)
    if "*" in (user, group) or not (user or group):
        user, group = "", _EVERYBODY
    path = "" if namespace or resource else "*"
    readonly = boolean_field(document, "readonly", place.format("readonly", "bool"))
    return Policy(user, group, readonly, "*", resource or "*", namespace or "*", path)
