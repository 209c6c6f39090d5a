"""Checks client certificates against a CA bundle, as Go's crypto/x509 does for client authentication.

Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go; crypto/x509's Verify.

OpenSSL checks the chain: like Go it takes certificates as tools make them (version 1, without SAN or AKI), which cryptography's
verifier, made for the web's rules, does not.
"""

from datetime import UTC, datetime

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from OpenSSL import crypto


class CertificateVerifier:
    """`client_ca` is PEM; ValueError when it holds no certificate. Any of its certificates may be the end of a chain, as in Go."""

    def __init__(self, client_ca: bytes) -> None:
        self._store = crypto.X509Store()
        self._store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
        for certificate in x509.load_pem_x509_certificates(client_ca):
            self._store.add_cert(crypto.X509.from_cryptography(certificate))

    def verify(self, leaf: bytes, chain: tuple[bytes, ...], now: float) -> tuple[x509.Certificate, float]:
        """The leaf, and when the first certificate of its chain expires (seconds since the epoch). All DER.
        ValueError for what is no client's certificate of this authority."""
        self._store.set_time(datetime.fromtimestamp(now, UTC))  # the time is the store's, not the context's
        try:
            first, *others = map(_loaded, (leaf, *chain))
            found = crypto.X509StoreContext(self._store, first, others).get_verified_chain()
            certificates = [certificate.to_cryptography() for certificate in found]
            if not all(map(_may_be_client, certificates)):
                raise ValueError("x509: certificate specifies an incompatible key usage")
        except (crypto.X509StoreContextError, x509.DuplicateExtension) as error:
            raise ValueError(f"x509: {error}") from error
        return certificates[0], min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)


def _loaded(der: bytes) -> crypto.X509:
    return crypto.X509.from_cryptography(x509.load_der_x509_certificate(der))


def _may_be_client(certificate: x509.Certificate) -> bool:
    """No extended key usage at all allows everything, as in Go."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages
