"""The rbac.authorization.k8s.io group."""

from typing import Any

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.rbac.role import RoleStrategy, rbac_name_errors
from fakeapiserver.registry.rbac.rolebinding import RoleBindingStrategy

_FACTS: dict[str, Any] = {
    "validate_name": rbac_name_errors,
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
