"""Writes certificates in DER, also such as no library writes: a server has to judge those as well."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Der = bytes


def tlv(tag: int, *parts: bytes) -> Der:
    body = b"".join(parts)
    size = len(body)
    if size < 128:
        return bytes((tag, size)) + body
    digits = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 128 | len(digits))) + digits + body


def sequence(*parts: bytes) -> Der:
    return tlv(0x30, *parts)


def oid(dotted: str) -> Der:
    first, second, *others = map(int, dotted.split("."))
    content = b""
    for arc in (first * 40 + second, *others):
        digits = [arc & 127]
        while arc := arc >> 7:
            digits.append(arc & 127 | 128)
        content += bytes(reversed(digits))
    return tlv(6, content)


def integer(value: int) -> Der:
    return tlv(2, value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, signed=True))


NULL: Final = tlv(5)
TRUE: Final = tlv(1, b"\xff")
FALSE: Final = tlv(1, b"\0")
CN: Final = "2.5.4.3"
ORGANIZATION: Final = "2.5.4.10"
CLIENT: Final = "1.3.6.1.5.5.7.3.2"
SERVER: Final = "1.3.6.1.5.5.7.3.1"
ANY_USAGE: Final = "2.5.29.37.0"
UNKNOWN: Final = "1.2.3.4"


def name(common: str | bytes, tag: int = 12) -> Der:
    """A subject with a CN; `tag` is its kind of string, by default UTF8String."""
    data = common.encode() if isinstance(common, str) else common
    return sequence(tlv(0x31, sequence(oid(CN), tlv(tag, data))))


@dataclass(frozen=True)
class Extension:
    oid: str
    value: Der
    critical: bool = False

    @property
    def der(self) -> Der:
        return sequence(oid(self.oid), TRUE if self.critical else b"", tlv(4, self.value))


def usages(*oids: str, critical: bool = False) -> Extension:
    return Extension("2.5.29.37", sequence(*map(oid, oids)), critical)


def basic(*parts: bytes, critical: bool = True) -> Extension:
    return Extension("2.5.29.19", sequence(*parts), critical)


def key_usage(bits: str, critical: bool = True) -> Extension:
    """`bits` as written, the first is digitalSignature and the sixth keyCertSign."""
    unused = -len(bits) % 8
    data = int(bits + "0" * unused or "0", 2).to_bytes((len(bits) + unused) // 8)
    return Extension("2.5.29.15", tlv(3, bytes((unused,)), data), critical)


def alternatives(*names: bytes, critical: bool = False) -> Extension:
    return Extension("2.5.29.17", sequence(*names), critical)


def dns(text: str) -> Der:
    return tlv(0x82, text.encode())


def email(text: str) -> Der:
    return tlv(0x81, text.encode())


def uri(text: str) -> Der:
    return tlv(0x86, text.encode())


def address(*numbers: int) -> Der:
    return tlv(0x87, bytes(numbers))


def directory(der: Der) -> Der:
    return tlv(0xA4, der)


def constraints(permitted: Sequence[bytes] = (), excluded: Sequence[bytes] = (), critical: bool = True) -> Extension:
    parts = [tlv(tag, *map(sequence, names)) for tag, names in ((0xA0, permitted), (0xA1, excluded)) if names]
    return Extension("2.5.29.30", sequence(*parts), critical)


def authority_key(digest: bytes, critical: bool = False) -> Extension:
    return Extension("2.5.29.35", sequence(tlv(0x80, digest)), critical)


def subject_key(digest: bytes, critical: bool = False) -> Extension:
    return Extension("2.5.29.14", tlv(4, digest), critical)


def policies(*oids: str, critical: bool = False) -> Extension:
    return Extension("2.5.29.32", sequence(*(sequence(oid(item)) for item in oids)), critical)


ECDSA_SHA256: Final = sequence(oid("1.2.840.10045.4.3.2"))
RSA_SHA256: Final = sequence(oid("1.2.840.113549.1.1.11"), NULL)
AUTHORITY: Final = (basic(TRUE), key_usage("0000011"))


def utc(text: str) -> Der:
    return tlv(0x17, text.encode())


def generalized(text: str) -> Der:
    return tlv(0x18, text.encode())


VERSION_3: Final = tlv(0xA0, tlv(2, b"\2"))
SERIAL: Final = integer(0x1234)
BEGINS: Final = utc("250101000000Z")
ENDS: Final = utc("450101000000Z")


@cache
def key(label: str) -> Any:
    """A key for each label; it begins with the kind if it isn't P-256."""
    kind = label.split("-", maxsplit=1)[0]
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind.startswith("rsa"):
        return rsa.generate_private_key(65537, int(kind[3:]))
    curves = {"p224": ec.SECP224R1(), "p384": ec.SECP384R1(), "p521": ec.SECP521R1(), "k256": ec.SECP256K1()}
    return ec.generate_private_key(curves.get(kind, ec.SECP256R1()))


@dataclass(frozen=True)
class Certificate:
    """The fields of a certificate; `der` signs it with the key of the label `signer`."""

    subject: Der
    issuer: Der
    key: str
    signer: str
    extensions: tuple[Extension, ...] = ()
    version: bytes = VERSION_3
    serial: Der = SERIAL
    begins: Der = BEGINS
    ends: Der = ENDS
    algorithm: Der = ECDSA_SHA256
    outer_algorithm: Der = b""
    digest: Any = field(default_factory=hashes.SHA256)
    padding: Any = field(default_factory=padding.PKCS1v15)
    spki: Der = b""
    unique_ids: bytes = b""
    tail: bytes = b""
    after: bytes = b""
    change: Callable[[bytes], bytes] = bytes

    @cached_property
    def der(self) -> Der:
        spki = self.spki or key(self.key).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        extensions = tlv(0xA3, sequence(*(item.der for item in self.extensions))) if self.extensions else b""
        validity = sequence(self.begins, self.ends)
        head = (self.version, self.serial, self.algorithm, self.issuer, validity, self.subject, spki)
        signed = sequence(*head, self.unique_ids, extensions, self.tail)
        signature = tlv(3, b"\0", self.change(self._signature(signed)))
        return sequence(signed, self.outer_algorithm or self.algorithm, signature) + self.after

    def _signature(self, data: bytes) -> bytes:
        signer = key(self.signer)
        if isinstance(signer, ed25519.Ed25519PrivateKey):
            return signer.sign(data)
        if isinstance(signer, rsa.RSAPrivateKey):
            return signer.sign(data, self.padding, self.digest)
        signature: bytes = signer.sign(data, ec.ECDSA(self.digest))
        return signature


def pem(der: Der) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
