"""Ingresses without a class get the default one. Upstream: k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass."""

from fakeapiserver.admission.default_class import default_class
from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import annotations


class DefaultIngressClass(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({GroupResource("networking.k8s.io", "ingresses")})

    async def admit(self, attributes: Attributes) -> None:
        ingress = attributes.object or {}
        spec = ingress.get("spec") or {}
        if spec.get("ingressClassName") is not None or "kubernetes.io/ingress.class" in annotations(ingress):
            return
        classes = self.initializer.getter.list("ingressclasses.networking.k8s.io")
        name = default_class(classes, "ingressclass.kubernetes.io/is-default-class")
        if name:
            ingress.setdefault("spec", {})["ingressClassName"] = name
