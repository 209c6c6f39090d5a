"""A pod that comes to a node carries the node's zone and region.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels/admission.go.
"""

from typing import Final

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.meta import metadata

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({PODS})
    subresources = True
    feature_gate = "PodTopologyLabelsAdmission"

    async def admit(self, attributes: Attributes) -> None:
        """A binding's labels become its pod's."""
        obj = attributes.object or {}
        if attributes.subresource == "":
            node = obj["spec"].get("nodeName")
        elif attributes.subresource == "binding" and obj["target"].get("kind") == "Node":
            node = obj["target"].get("name")
        else:
            return
        node_object = self.initializer.getter.get("nodes", "", node) if node else None
        if node_object is None:
            return
        labels = metadata(node_object).get("labels") or {}
        copied = {name: labels[name] for name in _LABELS if name in labels}
        if copied:
            meta = metadata(obj)
            meta["labels"] = {**(meta.get("labels") or {}), **copied}
