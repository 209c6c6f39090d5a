"""A certificate as Go parses it.

Upstream: crypto/x509/parser.go {parseCertificate,parseName,parseASN1String}.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from fakeapiserver.auth.certificates.der import BIT_STRING, INTEGER, SEQUENCE, SET, Malformed, Reader
from fakeapiserver.auth.certificates.extensions import Extensions, read_extensions

COMMON_NAME: Final = "2.5.4.3"
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_CURVES: Final = (ec.SECP224R1, ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_RSA: Final = "1.2.840.113549.1.1.1"
_EC: Final = "1.2.840.10045.2.1"
_ED25519: Final = "1.3.101.112"
_PRINTABLE: Final = re.compile(rb"[A-Za-z0-9 '()+,\-./:=?*&]*")
_NUMERIC: Final = re.compile(rb"[0-9 ]*")
_UTF8, _NUMERIC_STRING, _PRINTABLE_STRING, _T61, _IA5, _BMP = 12, 18, 19, 20, 22, 30


@dataclass(frozen=True)
class Algorithm:
    """An algorithm and its parameters: the DER of one element, or nothing."""

    oid: str
    parameters: bytes


@dataclass(frozen=True)
class Certificate:
    """`key` is None if Go knows no such key. Times are seconds since the epoch; names are DER, compared byte by byte."""

    der: bytes
    signed: bytes
    version: int
    algorithm: Algorithm
    issuer: bytes
    subject: bytes
    not_before: int
    not_after: int
    key: PublicKey | None
    key_der: bytes
    signature: bytes
    extensions: Extensions

    def values(self, oid: str) -> list[str]:
        """Returns the subject's attributes of a type, in their order."""
        return [value for attribute, value in _attributes(self.subject) if attribute == oid]

    @property
    def common_name(self) -> str:
        """Returns the last one; empty without any."""
        return (self.values(COMMON_NAME) or [""])[-1]


def parse(der: bytes) -> Certificate:
    """Raises Malformed for what Go's parser refuses."""
    outer = Reader(der)
    certificate = outer.inner()
    if outer:
        raise Malformed("x509: trailing data")
    signed = certificate.whole(SEQUENCE)
    body = Reader(signed).inner()
    version = _version(body)
    if body.integer() < 0:
        raise Malformed("x509: negative serial number")
    algorithm = body.whole(SEQUENCE)
    if certificate.whole(SEQUENCE) != algorithm:
        raise Malformed("x509: inner and outer signature algorithm identifiers don't match")
    issuer = body.whole(SEQUENCE)
    validity = body.inner()
    not_before, not_after = validity.time(), validity.time()
    subject = body.whole(SEQUENCE)
    for name in (issuer, subject):
        list(_attributes(name))
    key_der = body.whole(SEQUENCE)
    return Certificate(
        der,
        signed,
        version,
        _algorithm(Reader(algorithm).inner()),
        issuer,
        subject,
        not_before,
        not_after,
        _key(key_der),
        key_der,
        certificate.bits(),
        _extensions(body, version),
    )


def _version(body: Reader) -> int:
    explicit = body.optional(_VERSION)
    version = 0 if explicit is None else Reader(explicit).integer(INTEGER)
    if not 0 <= version <= 2:
        raise Malformed("x509: invalid version")
    return version + 1


def _extensions(body: Reader, version: int) -> Extensions:
    """Versions before the third have none, whatever they say."""
    if version > 1:
        for unique_id in (0x81, 0x82):
            body.optional(unique_id)
    found = body.optional(_EXTENSIONS) if version == 3 else None
    return Extensions() if found is None else read_extensions(Reader(found).inner())


def _algorithm(reader: Reader) -> Algorithm:
    oid = reader.oid()
    parameters = b""
    if reader:
        tag, content = reader.any()
        parameters = bytes((tag,)) + content
    return Algorithm(oid, parameters)


def _key(der: bytes) -> PublicKey | None:
    reader = Reader(der).inner()
    algorithm = _algorithm(reader.inner())
    bits = reader.content(BIT_STRING)[1:]
    if algorithm.oid not in (_RSA, _EC, _ED25519):
        return None
    if algorithm.oid == _RSA and algorithm.parameters != b"\5":
        raise Malformed("x509: RSA key missing NULL parameters")
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Malformed(f"x509: invalid public key: {error}") from None
    if isinstance(key, ec.EllipticCurvePublicKey) and (not isinstance(key.curve, _CURVES) or bits[:1] != b"\4"):
        raise Malformed("x509: unsupported elliptic curve")
    return key if isinstance(key, PublicKey) else None


def _attributes(name: bytes) -> Iterator[tuple[str, str]]:
    sets = Reader(name).inner()
    while sets:
        attributes = sets.inner(SET)
        while attributes:
            attribute = attributes.inner()
            yield attribute.oid(), _text(*attribute.any())


def _text(tag: int, data: bytes) -> str:
    if tag == _T61:
        return data.decode("latin-1")
    if tag == _PRINTABLE_STRING and _PRINTABLE.fullmatch(data):
        return data.decode()
    if tag == _NUMERIC_STRING and _NUMERIC.fullmatch(data):
        return data.decode()
    if tag == _BMP:
        return data.removesuffix(b"\0\0").decode("utf-16-be")
    if tag in (_UTF8, _IA5):
        return data.decode("utf-8" if tag == _UTF8 else "ascii")
    raise Malformed("x509: invalid or unsupported string")
