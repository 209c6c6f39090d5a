"""Certificates of a test server: an authority, serving and client certificates (ECDSA P-256), as PEM and on disk.

Upstream: k8s.io/client-go/util/cert; cmd/kubeadm/app/util/pkiutil
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fakeapiserver.transport.files import write_file
from fakeapiserver.transport.key_pair import KeyPair

SERVER_NAMES = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",
)
LIFETIME = timedelta(days=3650)
_BEGIN = datetime.fromtimestamp(0, UTC)  # clocks may be behind: a client's, and the server's own, which tests set


def create_authority(common_name: str = "fakeapiserver-ca") -> KeyPair:
    """A new self-signed certificate authority."""
    key = _new_key()
    usage = _key_usage(digital_signature=True, key_cert_sign=True, crl_sign=True)
    builder = _builder(_name(common_name), _name(common_name), key).add_extension(usage, critical=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return _sign(builder, key, key)


def issue_server(
    authority: KeyPair,
    names: Sequence[str] = SERVER_NAMES,
    common_name: str = "kube-apiserver",
    *,
    lifetime: timedelta = LIFETIME,
) -> KeyPair:
    """A serving certificate for DNS names and IP addresses; one with a negative lifetime has expired. Raises ValueError for an unusable
    authority."""
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
    return _issue(authority, _name(common_name), ExtendedKeyUsageOID.SERVER_AUTH, alternatives, lifetime)


def issue_client(authority: KeyPair, common_name: str, organizations: Sequence[str] = ()) -> KeyPair:
    """A client certificate: common name = user, organizations = groups. Raises ValueError for an unusable authority."""
    return _issue(authority, _name(common_name, organizations), ExtendedKeyUsageOID.CLIENT_AUTH, None)


def _issue(
    authority: KeyPair, subject: Any, purpose: Any, alternatives: Any, lifetime: timedelta = LIFETIME
) -> KeyPair:
    try:
        issuer = x509.load_pem_x509_certificate(authority.certificate)
        issuer_key = load_pem_private_key(authority.key, None)
    except (ValueError, TypeError) as error:
        raise ValueError(f"certificate authority cannot be read: {error}") from error
    key = _new_key()
    builder = _builder(subject, issuer.subject, key, lifetime)
    builder = builder.add_extension(_key_usage(digital_signature=True), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    public: Any = issuer_key.public_key()
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
    builder = builder.add_extension(identifier, critical=False)
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=False)
    return _sign(builder, key, issuer_key)


def _new_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str, organizations: Sequence[str] = ()) -> Any:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> Any:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(**used: bool) -> Any:
    every = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{use: used.get(use, False) for use in every})


def _builder(subject: Any, issuer: Any, key: Any, lifetime: timedelta = LIFETIME) -> Any:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(datetime.now(UTC) + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _sign(builder: Any, key: Any, issuer_key: Any) -> KeyPair:
    certificate = builder.sign(issuer_key, hashes.SHA256())
    return KeyPair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    )


def save(folder: Path, name: str, pair: KeyPair) -> None:
    """Write `<name>.crt` and `<name>.key` (0600), creating the folder (0700) if needed. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file(folder / f"{name}.key", pair.key, 0o600)
    write_file(folder / f"{name}.crt", pair.certificate)


def load(folder: Path, name: str) -> KeyPair | None:
    """Returns what `save` wrote, or None if neither file exists.

    Raises ValueError if one is missing or they do not belong together.
    """
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    if not certificate.exists() and not key.exists():
        return None
    return load_pair(certificate, key)


def load_pair(certificate: Path, key: Path) -> KeyPair:
    """Read and check a certificate and its key from two PEM files. Raises OSError or ValueError, each naming the file."""
    for path in (certificate, key):
        if not path.exists():
            raise ValueError(f"{path} is missing: a certificate and its key are needed together")
    pair = KeyPair(certificate.read_bytes(), key.read_bytes())

    try:
        public = load_pem_x509_certificate(pair.certificate).public_key()
    except ValueError as error:
        raise ValueError(f"{certificate} holds no PEM certificate") from error
    try:
        private = load_pem_private_key(pair.key, None)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{key} holds no unencrypted PEM private key") from error
    if private.public_key() != public:
        raise ValueError(f"{key} is not the key of {certificate}")
    return pair
