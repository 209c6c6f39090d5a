"""Makes the clients of kubelets, pods and services when they are first needed: they import TLS and HTTP."""

from typing import TYPE_CHECKING

from fakeapiserver.server.options.config import Config
from fakeapiserver.server.proxies import kubelet_client as kubelet_client_module
from fakeapiserver.server.proxies import resource_proxy as resource_proxy_module
from fakeapiserver.transport import certificates
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.round_trip import Transport

if TYPE_CHECKING:
    from fakeapiserver.endpoints.services import KubeletClient
    from fakeapiserver.server.proxies.resource_proxy import ResourceProxy


def kubelet_client(config: Config, own: KeyPair | None = None) -> "KubeletClient":
    """The client for kubelets in other processes; without the flags for its certificate it shows its `own`. Raises OSError and ValueError
    for unusable files."""
    certificate, key = config.kubelet_client_certificate, config.kubelet_client_key
    authority = config.kubelet_certificate_authority
    return kubelet_client_module.KubeletClient(
        certificates.load_pair(certificate, key) if certificate is not None and key is not None else own,
        authority.read_bytes() if authority is not None else b"",
        config.kubelet_preferred_address_types or kubelet_client_module.ADDRESS_TYPES,
    )


def resource_proxy() -> "ResourceProxy":
    return resource_proxy_module.ResourceProxy(Transport())
