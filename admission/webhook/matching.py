"""Whether a rule of a webhook speaks of a write.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
# What decides about webhooks and policies is not itself subject to them.
_EXEMPT: Final = frozenset(
    f"{prefix}{suffix}"
    for prefix in ("Validating", "Mutating")
    for suffix in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)


def is_exempt(attributes: Attributes) -> bool:
    return attributes.kind.kind in _EXEMPT and attributes.kind.group == "admissionregistration.k8s.io"


def namespace_of(attributes: Attributes) -> str:
    """A namespace is in itself."""
    if attributes.resource == _NAMESPACES and not attributes.namespace:
        return attributes.name
    return attributes.namespace


def matches(rule: Object, attributes: Attributes, resource: GroupVersionResource) -> bool:
    """`resource` is that of the write, or one equivalent to it."""
    return (
        _in_scope(rule.get("scope") or "*", attributes, resource)
        and _named(rule.get("operations"), attributes.operation)
        and _named(rule.get("apiGroups"), resource.group)
        and _named(rule.get("apiVersions"), resource.version)
        and any(_is(wanted, resource.resource, attributes.subresource) for wanted in rule.get("resources") or ())
    )


def _in_scope(scope: str, attributes: Attributes, resource: GroupVersionResource) -> bool:
    if scope == "*":
        return True
    namespaced = resource != _NAMESPACES and bool(attributes.namespace)
    return namespaced if scope == "Namespaced" else not namespaced


def _named(items: Sequence[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _is(wanted: str, resource: str, subresource: str) -> bool:
    """`pods`, `pods/status`, `*`, `*/status`, `pods/*`, `*/*`."""
    name, _, sub = wanted.partition("/")
    return name in ("*", resource) and sub in ("*", subresource)
