"""The certificates of a server: those that flags name, those of an earlier start, or new ones."""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from fakeapiserver.auth.authenticators.requestheader import RequestHeaderConfig
from fakeapiserver.auth.authenticators.tokenfile import MASTERS
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.proxies.front_proxy import FrontProxy
from fakeapiserver.transport import certificates, files
from fakeapiserver.transport.ca_bundle import check_bundle
from fakeapiserver.transport.key_pair import KeyPair

ADMIN: Final = "kubernetes-admin"


class Certificates(Struct, frozen=True):
    """The server's own certificate authority and what it has issued."""

    authority: KeyPair
    serving: KeyPair
    admin: KeyPair
    front_proxy: FrontProxy

    def kubelet_client(self) -> KeyPair:
        """Returns a new certificate that the server shows to kubelets, for the user that kubeadm gives it."""
        return certificates.issue_client(self.authority, "kube-apiserver-kubelet-client", [MASTERS])


def own_certificates(config: Config, authority: KeyPair | None = None) -> Certificates:
    """The certificates in --cert-dir, if that is set, else new ones that are never written to disk. `authority` issues them, if given."""
    try:
        authority = (
            authority or _kept(config.cert_dir, "ca") or _keep(config.cert_dir, "ca", certificates.create_authority())
        )
        serving = _serving(config, authority)
        admin = _kept(config.cert_dir, "admin") or _keep(
            config.cert_dir, "admin", certificates.issue_client(authority, ADMIN, [MASTERS])
        )
        front_proxy = _front_proxy(config)
    except OSError as error:
        if error.filename is None:
            raise
        raise OSError(
            f"can't use {error.filename}: {error.strerror}; check --cert-dir and the certificate files"
        ) from error
    return Certificates(authority, serving, admin, front_proxy)


def _front_proxy(config: Config) -> FrontProxy:
    """The front proxy that the flags configure, else one with an authority of its own, as kubeadm makes it."""
    ca_file, certificate, key = (
        config.requestheader_client_ca_file,
        config.proxy_client_cert_file,
        config.proxy_client_key_file,
    )
    client = certificates.load_pair(certificate, key) if certificate is not None and key is not None else None
    if ca_file is None and client is not None:
        return FrontProxy(client=client)
    if ca_file is not None:
        bundle = files.read_file(ca_file)
        check_bundle(f"request-header::{ca_file}", bundle)
        headers = RequestHeaderConfig(
            client_ca=bundle,
            allowed_names=config.requestheader_allowed_names,
            username_headers=config.requestheader_username_headers,
            uid_headers=config.requestheader_uid_headers,
            group_headers=config.requestheader_group_headers,
            extra_header_prefixes=config.requestheader_extra_headers_prefix,
        )
        return FrontProxy(headers, client)
    folder, names = config.cert_dir, RequestHeaderConfig(b"").allowed_names
    authority = _kept(folder, "front-proxy-ca") or _keep(
        folder, "front-proxy-ca", certificates.create_authority("front-proxy-ca")
    )
    client = _kept(folder, names[0]) or _keep(folder, names[0], certificates.issue_client(authority, names[0]))
    return FrontProxy(RequestHeaderConfig(authority.certificate), client)


def _serving(config: Config, authority: KeyPair) -> KeyPair:
    if config.tls_cert_file is not None and config.tls_private_key_file is not None:
        return certificates.load_pair(config.tls_cert_file, config.tls_private_key_file)
    serving = _kept(config.cert_dir, "apiserver")
    return serving or _keep(config.cert_dir, "apiserver", certificates.issue_server(authority, serving_names(config)))


BadCertificate = Literal["expired", "unknown", "name"]


def bad_serving(config: Config, authority: KeyPair, problem: BadCertificate) -> KeyPair:
    """Returns a serving certificate that clients refuse: it has expired, is of an unknown authority, or is for another name."""
    if problem == "unknown":
        return certificates.issue_server(certificates.create_authority("unknown"), serving_names(config))
    if problem == "name":
        return certificates.issue_server(authority, ["other.example.com"])
    return certificates.issue_server(authority, serving_names(config), lifetime=-timedelta(hours=1))


def serving_names(config: Config) -> list[str]:
    """The names and addresses that the serving certificate is issued for."""
    return list(dict.fromkeys([*certificates.SERVER_NAMES, *_addresses(config)]))


def _addresses(config: Config) -> Iterator[str]:
    """The bind address, the addresses and the name that clients elsewhere know, and the first of the service range: the address of the
    service `kubernetes`. As upstream, a server that listens on all addresses advertises that of the default route."""
    yield config.bind_address
    if config.advertise_address:
        yield config.advertise_address
    elif (bound := ipaddress.ip_address(config.bind_address)).is_unspecified:
        yield from _routed_address(bound.version)
    if config.external_hostname:
        yield config.external_hostname
    network = ipaddress.ip_network(config.service_ranges[0])
    yield str(network.network_address + 1)


def _routed_address(version: int) -> Iterator[str]:
    """The machine's own address of the default route, if there is one. No packet is sent: a datagram socket only looks up its route."""
    family, elsewhere = (socket.AF_INET, "192.0.2.1") if version == 4 else (socket.AF_INET6, "2001:db8::1")
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as looking:
        looking.connect((elsewhere, 9))
        yield looking.getsockname()[0]


def _kept(folder: Path | None, name: str) -> KeyPair | None:
    return certificates.load(folder, name) if folder is not None else None


def _keep(folder: Path | None, name: str, pair: KeyPair) -> KeyPair:
    if folder is not None:
        certificates.save(folder, name, pair)
    return pair
