"""The rbac.authorization.k8s.io group."""

from typing import Any

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.rbac.role import RoleStrategy
from fakeapiserver.registry.rbac.rolebinding import RoleBindingStrategy


def _name_problems(name: str, prefix: bool) -> list[str]:
    """A name that will be generated is judged like a whole one (upstream: ValidateRBACName)."""
    return names.path_segment_name(name)


_FACTS: dict[str, Any] = {
    "validate_name": _name_problems,
    "allow_create_on_update": True,
    "update_meta_checks": ("create", "spec", "update"),
    "validated_twice_until": "v1.34",
}
RESOURCES: dict[str, Strategy] = {
    "clusterrolebindings": RoleBindingStrategy(roles=("ClusterRole",), **_FACTS),
    "clusterroles": RoleStrategy(namespaced=False, **_FACTS),
    "rolebindings": RoleBindingStrategy(roles=("Role", "ClusterRole"), **_FACTS),
    "roles": RoleStrategy(namespaced=True, **_FACTS),
}
