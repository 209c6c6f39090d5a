"""Refuses updates of pods that need a feature which the pod's node has not declared.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures/admission.go, k8s.io/component-helpers/nodedeclaredfeatures.
"""

from collections.abc import Iterator

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object


class NodeDeclaredFeatureValidator(Handler):
    operations = frozenset({"UPDATE"})
    resources = frozenset({PODS})
    subresources = True
    feature_gate = "NodeDeclaredFeatures"

    async def validate(self, attributes: Attributes) -> None:
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


def _needed(spec: Object, old: Object) -> Iterator[str]:
    """Yields the declared features that the change of a running pod needs."""
    if spec.get("resources") != old.get("resources"):
        yield "InPlacePodLevelResourcesVerticalScaling"
    after = spec.get("initContainers") or ()
    for before, now in zip(old.get("initContainers") or (), after, strict=False):
        if before.get("restartPolicy") != "Always" and before.get("resources") != now.get("resources"):
            yield "InPlacePodVerticalScalingInitContainers"
            return
