"""The certificates.k8s.io group."""

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.certificates.certificatesigningrequest import CertificateSigningRequestStrategy
from fakeapiserver.registry.certificates.clustertrustbundle import ClusterTrustBundleStrategy
from fakeapiserver.registry.certificates.podcertificaterequest import PodCertificateRequestStrategy
from fakeapiserver.registry.certificates.signer_access import SignerAccess as SignerAccess
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "certificatesigningrequests": CertificateSigningRequestStrategy(
        validate_name=names.any_name,
        update_meta_checks=("create", "spec", "own", "update"),
        status_meta_checks=("create", "spec", "own", "update"),
        reset_fields=("spec", "status"),
        status_reset_fields=("spec", "status.conditions"),
        selectable_fields={"spec.signerName": "spec.signerName"},
        blank_spec={"request": None},
    ),
    "clustertrustbundles": ClusterTrustBundleStrategy(
        allow_unconditional_update=False,
        selectable_fields={"spec.signerName": "spec.signerName"},
        update_meta_checks=("create", "immutable", "update"),
    ),
    "podcertificaterequests": PodCertificateRequestStrategy(
        allow_unconditional_update=False,
        selectable_fields={f"spec.{name}": f"spec.{name}" for name in ("signerName", "podName", "nodeName")},
    ),
}
