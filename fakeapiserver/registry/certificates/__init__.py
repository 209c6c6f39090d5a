"""The certificates.k8s.io group."""

from fakeapiserver.registry.certificates.certificatesigningrequest import CertificateSigningRequestStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "certificatesigningrequests": CertificateSigningRequestStrategy(
        selectable_fields={"spec.signerName": "spec.signerName"}
    ),
    "clustertrustbundles": Strategy(
        allow_unconditional_update=False, selectable_fields={"spec.signerName": "spec.signerName"}
    ),
}
