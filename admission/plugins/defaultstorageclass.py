"""Claims without a class get the default one. Upstream: k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault."""

from fakeapiserver.admission.default_class import default_class
from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import annotations

_MARKS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


class DefaultStorageClass(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({GroupResource("", "persistentvolumeclaims")})

    async def admit(self, attributes: Attributes) -> None:
        claim = attributes.object or {}
        spec = claim.get("spec") or {}
        # An empty class is a choice: a volume without a class.
        if spec.get("storageClassName") is not None or "volume.beta.kubernetes.io/storage-class" in annotations(claim):
            return
        name = default_class(self.initializer.getter.list("storageclasses.storage.k8s.io"), *_MARKS)
        if name:
            claim.setdefault("spec", {})["storageClassName"] = name
