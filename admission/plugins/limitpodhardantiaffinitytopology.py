"""Required anti-affinity per node only. Upstream: k8s.io/kubernetes/plugin/pkg/admission/antiaffinity/admission.go."""

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_forbidden
from fakeapiserver.apimachinery.meta import name

_HOSTNAME = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Handler):
    resources = frozenset({PODS})

    async def validate(self, attributes: Attributes) -> None:
        pod = attributes.object or {}
        anti_affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("podAntiAffinity") or {}
        for term in anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey", "")
            if key != _HOSTNAME:
                start = "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey"
                raise new_forbidden(PODS, name(pod), f"{start} {key} but only key {_HOSTNAME} is allowed")
