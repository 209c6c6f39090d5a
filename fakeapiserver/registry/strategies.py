"""Finds the strategy of a built-in resource in the `RESOURCES` table of its group's package."""

from importlib import import_module
from importlib.util import find_spec

from msgspec.structs import replace

from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.registry.generic.field_paths import tree_of
from fakeapiserver.registry.generic.strategy import Strategy

# Groups whose package isn't named by the first word of the group.
_PACKAGES = {"": "core", "internal.apiserver.k8s.io": "apiserverinternal"}


def package_of(group: str) -> str:
    """`rbac.authorization.k8s.io` -> `rbac`, the legacy group -> `core` (upstream: pkg/registry/<package>)."""
    return _PACKAGES.get(group) or group.partition(".")[0]


def strategy_for(resource: APIResource, features: FeatureGates = DEFAULT_GATES) -> Strategy:
    """Returns the strategy of a built-in resource with these features on: the default one for a resource without a row."""
    module = f"{__package__}.{package_of(resource.gvr.group)}"
    table: dict[str, Strategy] = import_module(module).RESOURCES if find_spec(module) else {}
    strategy = table.get(resource.gvr.resource) or Strategy()
    disabled = tuple(
        [path for path in paths if features.at_least(strategy.gated_since.get(path, ""))]
        for gate, paths in strategy.gated_fields.items()
        if not features.enabled(gate) and features.at_least(strategy.gated_since.get(gate, ""))
    )
    return replace(
        strategy,
        reset_fields=strategy.reset_fields if strategy.reset_fields is not None else _status_of(resource),
        returns_deleted_object=resource.returns_deleted,
        has_generation=strategy.has_generation or _is_on(strategy.generation_gate, features),
        features=features,
        disabled_fields=disabled,
        disabled_tree=tree_of(disabled),
    )


def _is_on(gate: str, features: FeatureGates) -> bool:
    return bool(gate) and features.enabled(gate)


def _status_of(resource: APIResource) -> tuple[str, ...]:
    return ("status",) if "status" in resource.subresources else ()
