"""Refuses every write. Upstream: k8s.io/kubernetes/plugin/pkg/admission/deny/admission.go."""

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes


class AlwaysDeny(Handler):
    operations = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
    subresources = True

    async def admit(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")

    validate = admit
