"""A pod that asks for an extended resource tolerates the taint of its nodes.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration/admission.go.
"""

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.pod_resources import is_extended


class ExtendedResourceToleration(Handler):
    resources = frozenset({PODS})

    async def admit(self, attributes: Attributes) -> None:
        spec = (attributes.object or {})["spec"]
        asked = {
            name
            for field in ("containers", "initContainers")
            for container in spec.get(field) or ()
            for name in (container.get("resources") or {}).get("requests") or ()
        }
        for name in sorted(asked):
            if is_extended(name):
                _tolerate(spec, name)


def _tolerate(spec: Object, key: str) -> None:
    """Adds the toleration; it replaces a toleration that differs only in its seconds."""
    wanted = {"key": key, "operator": "Exists", "effect": "NoSchedule"}
    tolerations = list(spec.get("tolerations") or ())
    same = [i for i, toleration in enumerate(tolerations) if _matches(toleration, wanted)]
    for i in same:
        if tolerations[i] == wanted:
            return
        tolerations[i] = dict(wanted)
    spec["tolerations"] = tolerations if same else [*tolerations, wanted]


def _matches(toleration: Object, wanted: Object) -> bool:
    return all((toleration.get(name) or "") == wanted.get(name, "") for name in ("key", "effect", "operator", "value"))
