"""Certificates: what they say, where they are kept, and what is said of broken ones."""

import base64
import re
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fakeapiserver.transport.certificates import (
    SERVER_NAMES,
    create_authority,
    issue_client,
    issue_server,
    load,
    save,
)


def test_a_serving_certificate_has_all_names_of_the_service() -> None:
    authority = create_authority()
    certificate = x509.load_pem_x509_certificate(issue_server(authority).certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    dns = names.get_values_for_type(x509.DNSName)
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    assert {*dns, *addresses} == set(SERVER_NAMES)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))


def test_a_client_certificate_names_user_and_groups() -> None:
    certificate = x509.load_pem_x509_certificate(issue_client(create_authority(), "jane", ["a", "b"]).certificate)
    subject = certificate.subject
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane"]
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["a", "b"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_keys_say_in_their_header_what_they_are() -> None:
    """Java's fabric8 chooses its parser by the header alone: `PRIVATE KEY`, PKCS8's, is one for RSA to it."""
    pair = issue_client(create_authority(), "jane")
    match = re.fullmatch(rb"-----BEGIN EC PRIVATE KEY-----\n(.*)-----END EC PRIVATE KEY-----\n", pair.key, re.DOTALL)
    assert match is not None
    der = base64.b64decode(match[1])
    # RFC 5915: a sequence of the version 1, 32 octets, the curve prime256v1, the public key
    assert der[:2] == bytes([0x30, len(der) - 2])
    assert der[2:7] == bytes([2, 1, 1, 4, 32])
    assert der[39:51] == bytes.fromhex("a00a06082a8648ce3d030107")
    numbers = x509.load_pem_x509_certificate(pair.certificate).public_key()
    assert isinstance(numbers, ec.EllipticCurvePublicKey)
    assert der.endswith(numbers.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def test_saved_keys_are_private(tmp_path: Path) -> None:
    pair = create_authority()
    save(tmp_path / "pki", "ca", pair)
    assert load(tmp_path / "pki", "ca") == pair
    assert load(tmp_path / "pki", "apiserver") is None
    assert stat.S_IMODE((tmp_path / "pki" / "ca.key").stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "pki").iterdir()) == ["ca.crt", "ca.key"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("ca.key", None, r"ca\.key is missing"),
        ("ca.crt", b"x", r"ca\.crt holds no PEM certificate"),
        ("ca.key", b"x", r"ca\.key holds no unencrypted PEM private key"),
        ("ca.key", create_authority().key, r"ca\.key is not the key of .*ca\.crt"),
    ],
)
def test_broken_pairs_are_explained(tmp_path: Path, file: str, content: bytes | None, message: str) -> None:
    save(tmp_path, "ca", create_authority())
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path, "ca")
