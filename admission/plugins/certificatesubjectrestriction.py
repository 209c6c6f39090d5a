"""Refuses certificates of system:masters from the API server's own signer.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction.
"""

from typing import Final

from fakeapiserver.admission.certificate_requests import subject
from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupResource

_SIGNER: Final = "kubernetes.io/kube-apiserver-client"


class CertificateSubjectRestriction(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({GroupResource("certificates.k8s.io", "certificatesigningrequests")})

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") == _SIGNER and "system:masters" in organizations(spec.get("request") or ""):
            raise forbidden(attributes, f"use of {_SIGNER} signer with system:masters group is not allowed")


def organizations(request: str) -> list[str]:
    """Returns the organizations in a PEM request in base64; empty for a request that validation refuses anyway."""
    from cryptography.x509.oid import NameOID

    try:
        names = subject(request)
    except ValueError:
        return []
    return [str(name.value) for name in names.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
