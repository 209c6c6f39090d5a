"""A PodGroup stays until no pod is in it any more.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/scheduling/podgroupprotection/admission.go.
"""

from typing import Final

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import metadata

_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({GroupResource("scheduling.k8s.io", "podgroups")})
    feature_gate = "GenericWorkload"

    async def admit(self, attributes: Attributes) -> None:
        meta = metadata(attributes.object or {})
        finalizers = meta.get("finalizers") or []
        if _FINALIZER not in finalizers:
            meta["finalizers"] = [*finalizers, _FINALIZER]
