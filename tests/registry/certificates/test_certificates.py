"""Certificates and requests that something is wrong with."""

import contextlib
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec
from cryptography.hazmat.primitives.serialization import Encoding

from fakeapiserver.registry.certificates import certificate_request
from fakeapiserver.transport import x509_certificate

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
BEGIN = datetime.datetime(2026, 1, 1)


def request(key: ec.EllipticCurvePrivateKey | dsa.DSAPrivateKey = KEY) -> bytes:
    return (
        x509.CertificateSigningRequestBuilder().subject_name(NAME).sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
    )


def signed() -> bytes:
    builder = x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(KEY.public_key())
    builder = builder.serial_number(5).not_valid_before(BEGIN).not_valid_after(BEGIN + datetime.timedelta(days=1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def changed(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new, 1)


# id-ecPublicKey's curve and ecdsa-with-SHA256.
CURVE, SIGNED = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d040302")
REQUEST = request()
AT = REQUEST.index(bytes.fromhex("03420004"))
POINT, POINT_ELSEWHERE = REQUEST[AT : AT + 20], REQUEST[AT : AT + 19] + bytes([REQUEST[AT + 19] ^ 1])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (request(), ""),
        (b"\0\0\0", "x509: malformed certificate request"),
        (changed(request(), b"\x02\x01\x00", b"\x02\x01\x05"), "x509: malformed certificate request"),
        (changed(request(), b"\x0c\x01a", b"\x0c\x01b"), "x509: ECDSA verification failure"),
        (changed(request(), CURVE, CURVE[:-1] + b"\x7f"), "x509: unsupported elliptic curve"),
        (changed(REQUEST, POINT, POINT_ELSEWHERE), "P256 point not on curve"),
        (changed(request(), SIGNED, SIGNED[:-1] + b"\x7f"), "x509: cannot verify signature: algorithm unimplemented"),
        (request(ec.generate_private_key(ec.SECP256K1())), "x509: unsupported elliptic curve"),
        (request(dsa.generate_private_key(1024)), "x509: cannot verify signature: algorithm unimplemented"),
    ],
)
def test_requests(content: bytes, problem: str) -> None:
    assert certificate_request.problem(content) == problem


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_any_byte_may_be_wrong() -> None:
    content = signed()  # once: a signature's two numbers, and so a certificate, are not always of one length
    for at in range(len(content)):
        broken = bytearray(content)
        broken[at] ^= 1
        with contextlib.suppress(ValueError):
            x509_certificate.parsed(bytes(broken))


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (changed(signed(), b"\x02\x01\x05", b"\x02\x01\x85"), "x509: negative serial number"),
        (changed(signed(), b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07"), "x509: malformed certificate"),
        (changed(signed(), SIGNED, SIGNED[:-1] + b"\x03"), "x509: inner and outer signature algorithm identifiers"),
    ],
)
def test_certificates(content: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        x509_certificate.parsed(content)


def test_a_certificate_is_read() -> None:
    assert x509_certificate.parsed(signed()).serial_number == 5
