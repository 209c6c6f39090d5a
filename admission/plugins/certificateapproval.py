"""Only who may `approve` for a signer approves its requests.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/certificates/approval.
"""

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.signers import is_authorized_for_signer
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource


class CertificateApproval(Handler):
    operations = frozenset({"UPDATE"})
    resources = frozenset({GroupResource("certificates.k8s.io", "certificatesigningrequests")})
    subresources = True

    async def validate(self, attributes: Attributes) -> None:
        if attributes.subresource != "approval" or attributes.old_object is None:
            return
        signer = attributes.old_object["spec"]["signerName"]
        if not await is_authorized_for_signer(self.initializer.authorizer, attributes.user, "approve", signer):
            reason = f"user not permitted to approve requests with signerName {go_quote(signer)}"
            raise forbidden(attributes, reason)
