"""The certificate authorities of the signers (upstream: cmd/kube-controller-manager/app/certificates.go)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.transport import certificates
from fakeapiserver.transport.key_pair import KeyPair

KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBE_APISERVER_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"
# No certificates are requested from it: its authority is a ClusterTrustBundle.
KUBE_APISERVER_SERVING: Final = "kubernetes.io/kube-apiserver-serving"
SIGNERS: Final = (KUBELET_SERVING, KUBELET_CLIENT, KUBE_APISERVER_CLIENT, LEGACY_UNKNOWN)

_Files = tuple[Path | None, Path | None]


def authorities(configuration: KubeControllerManagerConfiguration) -> Mapping[str, KeyPair]:
    """By signer; one without files isn't there. OSError; ValueError for files that don't fit together."""
    pairs = configuration
    default: _Files = (pairs.cluster_signing_cert_file, pairs.cluster_signing_key_file)
    own: dict[str, _Files] = {
        KUBELET_SERVING: (
            pairs.cluster_signing_kubelet_serving_cert_file,
            pairs.cluster_signing_kubelet_serving_key_file,
        ),
        KUBELET_CLIENT: (pairs.cluster_signing_kubelet_client_cert_file, pairs.cluster_signing_kubelet_client_key_file),
        KUBE_APISERVER_CLIENT: (
            pairs.cluster_signing_kube_apiserver_client_cert_file,
            pairs.cluster_signing_kube_apiserver_client_key_file,
        ),
        LEGACY_UNKNOWN: (pairs.cluster_signing_legacy_unknown_cert_file, pairs.cluster_signing_legacy_unknown_key_file),
    }
    any_own = any(path is not None for files in own.values() for path in files)
    if any_own and all(default):
        raise ValueError("cannot specify default and per controller certs at the same time")
    if not any_own:
        own = dict.fromkeys(SIGNERS, default if all(default) else (None, None))
    return {signer: _pair(*files) for signer, files in own.items() if any(files)}


def _pair(certificate: Path | None, key: Path | None) -> KeyPair:
    return certificates.load_pair(certificate or Path(), key or Path())
