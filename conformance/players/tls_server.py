"""An HTTPS server in a thread, with a certificate of its own: what the webhooks and aggregated servers of scenarios run on."""

import base64
import ipaddress
import ssl
import tempfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

from conformance.players.credentials import new_certificate, private_pem

_LOOPBACK: Final = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.connections: set[socket] = set()
        super().__init__(("127.0.0.1", 0), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: who doesn't trust the certificate hangs up."""


class TLSServer:
    """A context manager. `ca_bundle` is base64 of its certificate's PEM."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.fault = ""
        self._signed = self_signed()
        self.ca_bundle = base64.b64encode(self._signed[1]).decode()
        self._server = _Server(handler)
        context = server_context(*self._signed)
        self._presented, self._certificate = context, ""
        context.sni_callback = self._choose
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def present(self, certificate: str) -> None:
        """Presents another certificate from now on: of an `unknown` authority, `expired`, for another `name`, or "": right.

        Open connections are closed, so that clients see it at once.
        """
        if certificate == self._certificate:
            return
        self._certificate = certificate
        if certificate == "unknown":
            self._presented = server_context(*self_signed("stranger"))
        else:
            self._presented = server_context(*(issued(*self._signed, certificate) if certificate else self._signed))
        for connection in list(self._server.connections):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def suffer(self, fault: str) -> None:
        """Answers everything with a fault from now on, or none with "". `certificate …`: presents one that `present` describes."""
        certificate = fault.removeprefix("certificate ") if fault.startswith("certificate ") else ""
        self.present(certificate)
        self.fault = "" if certificate else fault

    def _choose(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._presented

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def self_signed(subject: str = "conversion webhook") -> tuple[bytes, bytes]:
    """(key, certificate) as PEM: self-signed, for 127.0.0.1, localhost and services called `hook` in namespace default."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    names = x509.SubjectAlternativeName([_LOOPBACK, x509.DNSName("localhost"), x509.DNSName("hook.default.svc")])
    certificate = new_certificate(name, key, name, key, is_authority=True, names=names)
    return private_pem(key), certificate.public_bytes(Encoding.PEM)


def issued(authority_key: bytes, authority: bytes, flaw: str) -> tuple[bytes, bytes]:
    """(key, certificate) as PEM, signed by the authority: `expired`, or for another `name`."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName("other.example.com") if flaw == "name" else _LOOPBACK])
    certificate = new_certificate(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, flaw)]),
        key,
        x509.load_pem_x509_certificate(authority).subject,
        load_pem_private_key(authority_key, None),
        days=-1 if flaw == "expired" else 1,
        names=names,
    )
    return private_pem(key), certificate.public_bytes(Encoding.PEM)


def server_context(key: bytes, certificate: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.pem"
        chain.write_bytes(key + certificate)
        context.load_cert_chain(chain)
    return context
