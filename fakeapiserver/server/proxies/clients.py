"""Makes the clients of kubelets, pods and services when they are first needed: they import TLS and HTTP."""

from typing import TYPE_CHECKING

from fakeapiserver.server.options.config import Config

if TYPE_CHECKING:
    from fakeapiserver.endpoints.services import KubeletClient
    from fakeapiserver.server.proxies.resource_proxy import ResourceProxy


def kubelet_client(config: Config) -> "KubeletClient":
    """The client for kubelets in other processes. OSError and ValueError for unusable files."""
    from fakeapiserver.server.proxies.kubelet_client import ADDRESS_TYPES, KubeletClient
    from fakeapiserver.transport.certificates import load_pair

    certificate, key = config.kubelet_client_certificate, config.kubelet_client_key
    authority = config.kubelet_certificate_authority
    return KubeletClient(
        load_pair(certificate, key) if certificate is not None and key is not None else None,
        authority.read_bytes() if authority is not None else b"",
        config.kubelet_preferred_address_types or ADDRESS_TYPES,
    )


def resource_proxy() -> "ResourceProxy":
    from fakeapiserver.server.proxies.resource_proxy import ResourceProxy
    from fakeapiserver.transport.round_trip import Transport

    return ResourceProxy(Transport())
