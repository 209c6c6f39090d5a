"""Refuses the growth of claims whose class does not allow it. Upstream:
k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize/admission.go.
"""

from fractions import Fraction

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, annotations
from fakeapiserver.apimachinery.quantity import amount


class PersistentVolumeClaimResize(Handler):
    operations = frozenset({"UPDATE"})
    resources = frozenset({GroupResource("", "persistentvolumeclaims")})

    async def validate(self, attributes: Attributes) -> None:
        new, old = attributes.object or {}, attributes.old_object or {}
        if _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        if not self._expandable(new, old):
            raise forbidden(
                attributes,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
            )

    def _expandable(self, new: Object, old: Object) -> bool:
        name = _class(new)
        if not name or name != _class(old):
            return False
        storage_class = self.initializer.getter.get("storageclasses.storage.k8s.io", "", name)
        return bool(storage_class and storage_class.get("allowVolumeExpansion"))


def _size(claim: Object) -> Fraction:
    resources = (claim.get("spec") or {}).get("resources") or {}
    return amount((resources.get("requests") or {}).get("storage"))


def _class(claim: Object) -> str:
    """The beta annotation counts before the field."""
    in_spec = (claim.get("spec") or {}).get("storageClassName") or ""
    return str(annotations(claim).get("volume.beta.kubernetes.io/storage-class", in_spec))
