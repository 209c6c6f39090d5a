"""Pods stay five minutes on a node that is not ready or not reachable.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds/admission.go.
"""

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes


class DefaultTolerationSeconds(Handler):
    resources = frozenset({PODS})

    async def admit(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).setdefault("spec", {})
        seconds = {
            "node.kubernetes.io/not-ready": self.initializer.default_not_ready_toleration_seconds,
            "node.kubernetes.io/unreachable": self.initializer.default_unreachable_toleration_seconds,
        }
        tolerated = {
            toleration.get("key") or ""
            for toleration in spec.get("tolerations") or ()
            if (toleration.get("effect") or "NoExecute") == "NoExecute"
        }
        missing = [key for key in seconds if key not in tolerated and "" not in tolerated]
        if missing:
            spec["tolerations"] = [*(spec.get("tolerations") or ()), *(_tolerate(key, seconds[key]) for key in missing)]


def _tolerate(key: str, seconds: int) -> dict[str, object]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
