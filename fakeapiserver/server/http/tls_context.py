"""The TLS configuration of a server: its certificate, and client certificates that are requested but not verified.

Upstream: k8s.io/apiserver/pkg/server/secure_serving.go
"""

from typing import Any, Final

from fakeapiserver.server.http.tls_transport import RECORD

# The signature algorithms of Go's crypto/tls; pyOpenSSL has no method of its own to set them.
_SIGNATURES: Final = (
    b"rsa_pss_rsae_sha256:ecdsa_secp256r1_sha256:ed25519:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:"
    b"rsa_pkcs1_sha256:rsa_pkcs1_sha384:rsa_pkcs1_sha512:ecdsa_secp384r1_sha384:ecdsa_secp521r1_sha512"
)


class TLSContext:
    """The certificate and the settings that all connections of a server share (server_context).

    Client certificates are requested, and every client is let in: the application verifies the certificate and answers 401. The standard
    library's `ssl` can only refuse an invalid one in the handshake, before it is known whether a client presents any.
    """

    def __init__(self, openssl: Any) -> None:
        from OpenSSL import SSL

        self.openssl = openssl
        # The functions of OpenSSL, and a buffer that connections use within one call.
        self.lib: Any = SSL._lib  # type: ignore[attr-defined]
        self.ffi: Any = SSL._ffi  # type: ignore[attr-defined]
        self.scratch: Any = self.ffi.new("char[]", 2 * RECORD)
        self._announced: frozenset[bytes] = frozenset()

    def announce(self, client_ca: bytes) -> None:
        """Announces to clients whose certificates (PEM) are known: many send none from other authorities.

        Announcements are not withdrawn.
        """
        from cryptography.x509 import load_pem_x509_certificates

        authorities = {
            authority.subject.public_bytes(): authority for authority in load_pem_x509_certificates(client_ca)
        }
        for subject in authorities.keys() - self._announced:
            self.openssl.add_client_ca(authorities[subject])
        self._announced |= authorities.keys()


def server_context(certificate: bytes, key: bytes, *, requests_certificates: bool = True) -> TLSContext:
    """A context for `Server` from PEM bytes: TLS 1.2 and later, ALPN http/1.1.

    `requests_certificates`: clients are asked for a certificate. Raises ValueError if certificate and key are not PEM or do not fit
    together.
    """
    try:
        return _context(certificate, key, requests_certificates)
    except Exception as error:
        raise ValueError(f"serving certificate and key cannot be used: {error}") from error


def _context(certificate: bytes, key: bytes, requests_certificates: bool) -> TLSContext:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates
    from OpenSSL import SSL

    leaf, *rest = load_pem_x509_certificates(certificate)
    openssl = SSL.Context(SSL.TLS_SERVER_METHOD)
    openssl.set_min_proto_version(SSL.TLS1_2_VERSION)
    openssl.use_certificate(leaf)
    for issuer in rest:
        openssl.add_extra_chain_cert(issuer)
    openssl.use_privatekey(load_pem_private_key(key, None))  # type: ignore[arg-type]
    openssl.check_privatekey()
    if requests_certificates:
        openssl.set_verify(SSL.VERIFY_PEER, lambda *_: True)
    openssl.set_alpn_select_callback(_select_alpn)
    # An idle connection keeps no buffers for records: two of 17 KiB otherwise.
    openssl.set_mode(SSL._lib.SSL_MODE_RELEASE_BUFFERS)  # type: ignore[attr-defined]
    # Clients present no certificate that is signed or signs otherwise.
    SSL._lib.SSL_CTX_set1_sigalgs_list(openssl._context, _SIGNATURES)  # type: ignore[attr-defined]
    # A resumed session would come without the client's chain.
    openssl.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    openssl.set_options(SSL.OP_NO_TICKET)
    return TLSContext(openssl)


def _select_alpn(_: Any, offered: list[bytes]) -> Any:
    from OpenSSL import SSL

    return b"http/1.1" if b"http/1.1" in offered else SSL.NO_OVERLAPPING_PROTOCOLS
