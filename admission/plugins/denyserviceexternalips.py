"""No new external IPs on services. Upstream: k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips."""

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object


class DenyServiceExternalIPs(Handler):
    resources = frozenset({GroupResource("", "services")})

    async def validate(self, attributes: Attributes) -> None:
        if not _addresses(attributes.object) <= _addresses(attributes.old_object):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")


def _addresses(service: Object | None) -> set[str]:
    return set(((service or {}).get("spec") or {}).get("externalIPs") or ())
