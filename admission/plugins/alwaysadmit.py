"""Admits everything. Upstream: k8s.io/kubernetes/plugin/pkg/admission/admit/admission.go."""

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes


class AlwaysAdmit(Handler):
    async def admit(self, attributes: Attributes) -> None:
        return
