"""Refuses updates of pods, and slices of devices, that need a feature which a node has not declared.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures/admission.go, k8s.io/component-helpers/nodedeclaredfeatures.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.field import Path, invalid
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.labels import Requirement
from fakeapiserver.apimachinery.meta import Object, metadata

_SLICES: Final = GroupResource("resource.k8s.io", "resourceslices")
_ALLOCATABLE: Final = "DRANodeAllocatableResources"
_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": ">", "Lt": "<"}


class NodeDeclaredFeatureValidator(Handler):
    resources = frozenset({PODS, _SLICES})
    subresources = True
    feature_gate = "NodeDeclaredFeatures"

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource == _SLICES:
            if self.initializer.features.enabled(_ALLOCATABLE):
                self._check_slice(attributes)
        elif attributes.operation == "UPDATE":
            self._check_pod(attributes)

    def _check_pod(self, attributes: Attributes) -> None:
        spec, old = (attributes.object or {})["spec"], (attributes.old_object or {})["spec"]
        name = spec.get("nodeName")
        if attributes.subresource not in ("", "resize") or not name or spec == old:
            return
        needed = sorted(_needed(spec, old))
        if not needed:
            return
        node = self.initializer.getter.get("nodes", "", name)
        if node is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found")
        declared = (node.get("status") or {}).get("declaredFeatures") or ()
        if missing := [feature for feature in needed if feature not in declared]:
            told = f"{', '.join(missing)} which are not available on node {go_quote(name)}"
            raise forbidden(attributes, f"pod update requires features {told}")

    def _check_slice(self, attributes: Attributes) -> None:
        """Each node of a device that takes resources of nodes must have declared that it counts them."""
        spec = (attributes.object or {})["spec"]
        for device in spec.get("devices") or ():
            of_device = device.get("basic", device)  # v1beta1 has a level more
            if not of_device.get("nodeAllocatableResources"):
                continue
            chosen = of_device if spec.get("perDeviceNodeSelection") else spec
            for node in self._nodes_of(attributes, chosen, device["name"]):
                if _ALLOCATABLE not in ((node.get("status") or {}).get("declaredFeatures") or ()):
                    name = go_quote(metadata(node)["name"])
                    raise forbidden(attributes, f"node {name} does not support {_ALLOCATABLE} feature")

    def _nodes_of(self, attributes: Attributes, chosen: Mapping[str, Any], device: str) -> list[Object]:
        """The nodes that a slice or a device names or selects. StatusError 403 for a missing node, and if it does neither; 400 for a
        selector that compares with something else than an integer."""
        getter = self.initializer.getter
        if name := chosen.get("nodeName"):
            node = getter.get("nodes", "", name)
            if node is None:
                raise forbidden(attributes, f"node {go_quote(name)} not found for device {go_quote(device)}")
            return [node]
        if (selector := chosen.get("nodeSelector")) is not None:
            terms = selector.get("nodeSelectorTerms") or ()
            for i, term in enumerate(terms):
                _check_numbers(term, Path("nodeSelectorTerms").index(i))
            return [node for node in getter.list("nodes") if any(_is_selected(term, node) for term in terms)]
        if chosen.get("allNodes"):
            return list(getter.list("nodes"))
        reason = "in ResourceSlice has NodeAllocatableResources but does not map to any nodes"
        raise forbidden(attributes, f"device {go_quote(device)} {reason}")


def _is_selected(term: Mapping[str, Any], node: Object) -> bool:
    """Reports whether a NodeSelectorTerm selects a node; an empty one selects none."""
    meta = metadata(node)
    rows = [(row, meta.get("labels") or {}) for row in term.get("matchExpressions") or ()]
    rows += [(row, {"metadata.name": meta["name"]}) for row in term.get("matchFields") or ()]
    return bool(rows) and all(_requirement(row).matches(values) for row, values in rows)


def _check_numbers(term: Mapping[str, Any], path: Path) -> None:
    for i, row in enumerate(term.get("matchExpressions") or ()):
        if row["operator"] not in ("Gt", "Lt"):
            continue
        try:
            parse_int(row["values"][0])
        except ValueError:
            at = path.child("matchExpressions").index(i).child("values").index(0)
            error = invalid(at, row["values"][0], "for 'Gt', 'Lt' operators, the value must be an integer")
            raise new_bad_request(f"failed to create node selector: {error}") from None


def _requirement(row: Mapping[str, Any]) -> Requirement:
    return Requirement(row["key"], _OPERATORS[row["operator"]], tuple(row.get("values") or ()))


def _needed(spec: Object, old: Object) -> Iterator[str]:
    """Yields the declared features that the change of a running pod needs."""
    if spec.get("resources") != old.get("resources"):
        yield "InPlacePodLevelResourcesVerticalScaling"
    after = spec.get("initContainers") or ()
    for before, now in zip(old.get("initContainers") or (), after, strict=False):
        if before.get("restartPolicy") != "Always" and before.get("resources") != now.get("resources"):
            yield "InPlacePodVerticalScalingInitContainers"
            return
