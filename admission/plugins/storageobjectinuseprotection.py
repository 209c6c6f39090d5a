"""Volumes and claims in use are not removed. Upstream: k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection."""

from typing import Final

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource

_CLASSES: Final = GroupResource("storage.k8s.io", "volumeattributesclasses")
_FINALIZERS: Final = {
    GroupResource("", "persistentvolumes"): "kubernetes.io/pv-protection",
    GroupResource("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    _CLASSES: "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset(_FINALIZERS)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource == _CLASSES and not self.initializer.features.enabled(
            "VolumeAttributesClass"
        ):
            return
        finalizer = _FINALIZERS[attributes.resource.group_resource]
        meta = (attributes.object or {}).setdefault("metadata", {})
        present = meta.get("finalizers") or []
        if finalizer not in present:
            meta["finalizers"] = [*present, finalizer]
