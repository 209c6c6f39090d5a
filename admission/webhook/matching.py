"""Whether a webhook or policy matches a write: by its rules, the object's labels and the namespace's.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/{rules/rules,namespace/matcher,object/matcher}.go.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fakeapiserver.admission.interfaces import Attributes, Versions
from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.object_reader import ObjectReader

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
    """`resource` is that of the write, or one equivalent to it. Only rules of policies have names."""
    names = rule.get("resourceNames")
    return (
        (not names or attributes.name in names)
        and _in_scope(rule.get("scope") or "*", attributes, resource)
        and _named(rule.get("apiGroups"), resource.group)
        and _named(rule.get("apiVersions"), resource.version)
        and operates(rule, attributes)
    )


def operates(rule: Object, attributes: Attributes) -> bool:
    """Reports whether a rule is about the operation, and about the resource in whichever group and version. What is equivalent to it has
    the same name.
    """
    name, subresource = attributes.resource.resource, attributes.subresource
    return _named(rule.get("operations"), attributes.operation) and any(
        _is(wanted, name, subresource) for wanted in rule.get("resources") or ()
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


Matched = tuple[GroupVersionResource, GroupVersionKind]


def matched(rules: Iterable[Object], match_policy: str, attributes: Attributes, versions: Versions) -> Matched | None:
    """Returns the resource and kind in which the rules match the write, or None."""
    if any(matches(rule, attributes, attributes.resource) for rule in rules):
        return attributes.resource, attributes.kind
    if match_policy == "Exact":
        return None
    others = versions.equivalents(attributes.resource, attributes.kind)
    for rule in rules if others else ():
        for resource, kind in others:
            if matches(rule, attributes, resource):
                return resource, kind
    return None


def in_namespace(selector: Selector, attributes: Attributes, getter: ObjectReader) -> bool:
    """StatusError 404 without such a namespace."""
    namespace, resource = namespace_of(attributes), attributes.resource
    if selector.empty or (not namespace and resource.resource != "namespaces"):
        return True
    itself = resource.resource == "namespaces" and not attributes.subresource
    if itself and attributes.operation in ("CREATE", "UPDATE"):
        return selector.matches(_labels(attributes.object))
    return selector.matches(_labels(found_namespace(namespace, getter)))


def found_namespace(name: str, getter: ObjectReader) -> Object:
    """StatusError 404."""
    namespace = getter.get("namespaces", "", name)
    if namespace is None:
        raise new_not_found(GroupResource("", "namespaces"), name)
    return namespace


def has_labels(selector: Selector, attributes: Attributes) -> bool:
    """Reports whether the new object has them, or the old one."""
    if selector.empty:
        return True
    seen = (attributes.object, attributes.old_object)
    return any(obj is not None and selector.matches(_labels(obj)) for obj in seen)


def _labels(obj: Object | None) -> dict[str, str]:
    return metadata(obj or {}).get("labels") or {}


async def in_version(obj: Object | None, kind: GroupVersionKind, versions: Versions) -> Object | None:
    if obj is None or obj.get("apiVersion") == kind.api_version:
        return obj
    return await versions.convert(obj, kind)
