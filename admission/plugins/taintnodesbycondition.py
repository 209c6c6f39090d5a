"""A new node is not ready until it says so. Upstream: k8s.io/kubernetes/plugin/pkg/admission/nodetaint/admission.go."""

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource

_KEY, _EFFECT = "node.kubernetes.io/not-ready", "NoSchedule"


class TaintNodesByCondition(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({GroupResource("", "nodes")})

    async def admit(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(taint.get("key") == _KEY and taint.get("effect") == _EFFECT for taint in taints):
            spec["taints"] = [*taints, {"key": _KEY, "effect": _EFFECT}]
