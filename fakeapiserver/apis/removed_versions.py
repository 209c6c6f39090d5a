"""API versions that Kubernetes has removed, and that older clients still ask for: `--runtime-config=api/removed=true` serves them again.

Only versions whose objects differ from the present ones in nothing but apiVersion. Upstream has no such switch.
"""

import copy
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.schema.resolve import Definitions

SWITCH: Final = "api/removed"

Discovery = Mapping[str, list[dict[str, Any]]]

# The removed version -> the present one, and the resources that both have.
REMOVED: Final[Mapping[GroupVersion, tuple[str, frozenset[str]]]] = {
    GroupVersion("autoscaling", "v2beta2"): ("v2", frozenset(("horizontalpodautoscalers",))),
    GroupVersion("batch", "v1beta1"): ("v1", frozenset(("cronjobs",))),
    GroupVersion("policy", "v1beta1"): ("v1", frozenset(("poddisruptionbudgets",))),
    GroupVersion("rbac.authorization.k8s.io", "v1beta1"): (
        "v1",
        frozenset(("clusterrolebindings", "clusterroles", "rolebindings", "roles")),
    ),
    GroupVersion("scheduling.k8s.io", "v1beta1"): ("v1", frozenset(("priorityclasses",))),
}
# No path serves these, but bodies that name them are decoded.
SCALES: Final = frozenset(
    GroupVersionKind(group, version, "Scale")
    for group, version in (("apps", "v1beta1"), ("apps", "v1beta2"), ("extensions", "v1beta1"))
)
OLD_SCALE: Final = "io.k8s.api.extensions.v1beta1.Scale"
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_STATUS: Final = f"{OLD_SCALE}Status"
# The lowest priority of a version, so that clients prefer any other.
_LAST: Final = 1


def with_removed(discovery: Discovery) -> Discovery:
    """Returns the recorded discovery with the removed versions, each the last one of its group."""
    return {
        path: [{**group, "versions": [*group["versions"], *_removed_of(group)]} for group in groups]
        for path, groups in discovery.items()
    }


def services_beside(obj: Mapping[str, Any], served: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Yields the APIServices of the removed versions that are `served` if the object is the APIService of their present version."""
    if obj["kind"] != "APIService":
        return
    for gv, (present, _) in REMOVED.items():
        if (obj["spec"].get("group"), obj["spec"]["version"]) == (gv.group, present) and gv.version in served[gv.group]:
            yield {
                **copy.deepcopy(dict(obj)),
                "metadata": {**copy.deepcopy(obj["metadata"]), "name": f"{gv.version}.{gv.group}"},
                "spec": {**obj["spec"], "version": gv.version, "versionPriority": _LAST},
            }


def _removed_of(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    by_name = {row["version"]: row for row in group["versions"]}
    return [
        {
            **by_name[present],
            "version": gv.version,
            "versionPriority": _LAST,
            "resources": [row for row in by_name[present]["resources"] if row["resource"] in resources],
        }
        for gv, (present, resources) in REMOVED.items()
        if gv.group == group["metadata"].get("name")
    ]


def with_old_scale(definitions: Definitions) -> Definitions:
    """Returns a version's definitions with OLD_SCALE, whose status has a selector as a map and one as text."""
    present = definitions[_SCALE]
    status = {
        "replicas": {"type": "integer", "format": "int32"},
        "selector": {"type": "object", "additionalProperties": {"type": "string"}},
        "targetSelector": {"type": "string"},
    }
    scale = {**present, "properties": {**present["properties"], "status": {"$ref": f"#/components/schemas/{_STATUS}"}}}
    own = {OLD_SCALE: scale, _STATUS: {"type": "object", "properties": status}}
    return ChainMap(own, dict(definitions))
