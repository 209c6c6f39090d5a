"""A compiled policy rule, and its decision about a request.

Upstream: k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go, plugin/pkg/auth/authorizer/rbac/rbac.go (RuleAllows).
"""

from collections.abc import Sequence
from typing import Any

from fakeapiserver.auth.interfaces import Attributes

PolicyRule = dict[str, Any]


class Rule:
    """A rule with its lists as sets; `None` is everything."""

    __slots__ = ("groups", "names", "paths", "resources", "verbs")

    def __init__(self, rule: PolicyRule) -> None:
        self.verbs = _set_or_all(rule.get("verbs"))
        self.groups = _set_or_all(rule.get("apiGroups"))
        self.resources = frozenset(rule.get("resources") or ())
        self.names = frozenset(rule.get("resourceNames") or ())
        self.paths = tuple(rule.get("nonResourceURLs") or ())

    def allows(self, attributes: Attributes) -> bool:
        if not attributes.resource_request:
            return self.allows_path(attributes)
        return not self.resources.isdisjoint(words(attributes)) and self.allows_about(attributes)

    def allows_about(self, attributes: Attributes) -> bool:
        """Reports whether a request is allowed that is known to be about one of the rule's resources."""
        return (
            (self.verbs is None or attributes.verb in self.verbs)
            and (self.groups is None or attributes.api_group in self.groups)
            and (not self.names or attributes.name in self.names)
        )

    def allows_path(self, attributes: Attributes) -> bool:
        """Reports whether a request that is not about a resource is allowed."""
        if self.verbs is not None and attributes.verb not in self.verbs:
            return False
        return any(path_matches(path, attributes.path) for path in self.paths)


def _set_or_all(values: Sequence[str] | None) -> frozenset[str] | None:
    return None if values and "*" in values else frozenset(values or ())


def path_matches(pattern: str, path: str) -> bool:
    """A non-resource URL of a rule: equal, or a prefix when it ends in `*`."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def words(attributes: Attributes) -> tuple[str, ...]:
    """Returns the words by which rules may name the request's resource."""
    if not attributes.subresource:
        return (attributes.resource, "*")
    return (f"{attributes.resource}/{attributes.subresource}", "*", f"*/{attributes.subresource}")
