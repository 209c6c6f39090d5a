"""Checks client certificates against a CA bundle, as Go's crypto/x509 does for client authentication.

Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go; crypto/x509's Verify.

OpenSSL checks the chain: like Go it takes certificates as tools make them (version 1, without SAN or AKI), which cryptography's
verifier, made for the web's rules, does not. What Go is stricter in is checked here, on the chain that OpenSSL has found.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, SignatureAlgorithmOID
from OpenSSL import crypto

# Go knows no others, and takes no MD5 and no SHA-1.
_ALGORITHMS: Final = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_SHA256,
        SignatureAlgorithmOID.RSA_WITH_SHA384,
        SignatureAlgorithmOID.RSA_WITH_SHA512,
        SignatureAlgorithmOID.RSASSA_PSS,
        SignatureAlgorithmOID.ECDSA_WITH_SHA256,
        SignatureAlgorithmOID.ECDSA_WITH_SHA384,
        SignatureAlgorithmOID.ECDSA_WITH_SHA512,
        SignatureAlgorithmOID.ED25519,
    }
)
_HASHES: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
# What Go understands where it is marked critical.
_UNDERSTOOD: Final = frozenset(
    {
        ExtensionOID.KEY_USAGE,
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.NAME_CONSTRAINTS,
        ExtensionOID.CRL_DISTRIBUTION_POINTS,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.CERTIFICATE_POLICIES,
        ExtensionOID.POLICY_MAPPINGS,
        ExtensionOID.POLICY_CONSTRAINTS,
        ExtensionOID.INHIBIT_ANY_POLICY,
    }
)
_NAMES: Final = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)


class CertificateVerifier:
    """`client_ca` is PEM; ValueError when it holds no certificate. Any of its certificates may be the end of a chain, as in Go."""

    def __init__(self, client_ca: bytes) -> None:
        self._authorities = [
            crypto.X509.from_cryptography(certificate) for certificate in x509.load_pem_x509_certificates(client_ca)
        ]

    def verify(self, leaf: bytes, chain: tuple[bytes, ...], now: float) -> tuple[x509.Certificate, float]:
        """Verifies a client certificate; all DER. Returns it, and when the first certificate of its chain expires
        (seconds since the epoch).

                Raises ValueError if it is no client certificate of this authority.
        """
        try:
            first, *others = map(_loaded, (leaf, *chain))
            verified = crypto.X509StoreContext(self._store_at(now), first, others).get_verified_chain()
            certificates = [certificate.to_cryptography() for certificate in verified]
            _check_as_go(certificates)
        except (crypto.X509StoreContextError, x509.DuplicateExtension) as error:
            raise ValueError(f"x509: {error}") from error
        return certificates[0], min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)

    def _store_at(self, now: float) -> crypto.X509Store:
        """A new one each time: OpenSSL keeps the first time that a store was given."""
        store = crypto.X509Store()
        store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN | crypto.X509StoreFlags.POLICY_CHECK)
        store.set_time(datetime.fromtimestamp(now, UTC))
        for authority in self._authorities:
            store.add_cert(authority)
        return store


def _loaded(der: bytes) -> crypto.X509:
    return crypto.X509.from_cryptography(x509.load_der_x509_certificate(der))


def _check_as_go(certificates: Sequence[x509.Certificate]) -> None:
    """The chain, leaf first. ValueError for what Go refuses and OpenSSL takes."""
    if not all(map(_may_be_client, certificates)):
        raise ValueError("x509: certificate specifies an incompatible key usage")
    for certificate in certificates:
        for extension in certificate.extensions:
            if extension.critical and not _understood(extension):
                raise ValueError("x509: unhandled critical extension")
    for child, parent in pairwise(certificates):
        if not _signs_safely(child):
            raise ValueError("x509: cannot verify signature: insecure or unknown algorithm")
        if parent.version is x509.Version.v3 and not _is_authority(parent):
            raise ValueError("x509: invalid signature: parent certificate cannot sign this kind of certificate")


def _understood(extension: "x509.Extension[x509.ExtensionType]") -> bool:
    """Names of other kinds than Go's own are as good as not understood."""
    value = extension.value
    if isinstance(value, x509.SubjectAlternativeName):
        return any(isinstance(name, _NAMES) for name in value)
    if isinstance(value, x509.NameConstraints):
        return all(
            isinstance(name, _NAMES) for name in (*(value.permitted_subtrees or ()), *(value.excluded_subtrees or ()))
        )
    return extension.oid in _UNDERSTOOD


def _signs_safely(certificate: x509.Certificate) -> bool:
    if certificate.signature_algorithm_oid not in _ALGORITHMS:
        return False
    digest = certificate.signature_hash_algorithm
    return digest is None or isinstance(digest, _HASHES)  # Ed25519 has its own


def _is_authority(certificate: x509.Certificate) -> bool:
    """OpenSSL takes a key usage alone for it as well."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _may_be_client(certificate: x509.Certificate) -> bool:
    """No extended key usage at all allows everything, as in Go."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages
