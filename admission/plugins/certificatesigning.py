"""Only users allowed to `sign` for a signer may issue its certificates.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/certificates/signing.
"""

from typing import Any

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.signers import is_authorized_for_signer
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object


class CertificateSigning(Handler):
    operations = frozenset({"UPDATE"})
    resources = frozenset({GroupResource("certificates.k8s.io", "certificatesigningrequests")})
    subresources = True

    async def validate(self, attributes: Attributes) -> None:
        old = attributes.old_object
        if attributes.subresource != "status" or old is None or _answer(old) == _answer(attributes.object):
            return
        signer = old["spec"]["signerName"]
        if not await is_authorized_for_signer(self.initializer.authorizer, attributes.user, "sign", signer):
            raise forbidden(attributes, f"user not permitted to sign requests with signerName {go_quote(signer)}")


def _answer(request: Object | None) -> tuple[Any, Any]:
    status = (request or {}).get("status") or {}
    return status.get("certificate") or "", status.get("conditions") or []
