"""Go's errors for certificates and certificate requests whose DER is malformed.

Go reads requests with one package and certificates with another; both are followed as far as the parts that every one has.
Upstream: encoding/asn1/asn1.go, crypto/x509/{parser,x509}.go, golang.org/x/crypto/cryptobyte/asn1.go.
"""

from typing import Final

_INTEGER, _BITS, _OBJECT, _SEQUENCE, _VERSION = 2, 3, 6, 16, 0xA0
_MANY: Final = 0x30  # the first byte of a sequence
_WHOLE: Final = 1 << 23
_PARAMETERS: Final = (
    "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 "
    "set:false omitEmpty:false}"
)

# -------------------------------------------------------------------- requests


def request_problem(der: bytes) -> str:
    """The problem of a certificate request's structure; empty if it has all parts."""
    try:
        whole = _Fields(der)
        request = _Fields(whole.read(_SEQUENCE, "certificateRequest"))
        request_info = _Fields(request.read(_SEQUENCE, "tbsCertificateRequest"))
        _check_integer(request_info.read(_INTEGER, "int"))
        request_info.read(None, "")
        key = _Fields(request_info.read(_SEQUENCE, "publicKeyInfo"))
        _Fields(key.read(_SEQUENCE, "AlgorithmIdentifier")).read(_OBJECT, "ObjectIdentifier")
        key.read(_BITS, "BitString")
        _Fields(request.read(_SEQUENCE, "AlgorithmIdentifier")).read(_OBJECT, "ObjectIdentifier")
        request.read(_BITS, "BitString")
    except ValueError as error:
        return f"asn1: {error}"
    return "" if whole.ended else "asn1: syntax error: trailing data"


class _Fields:
    """The values of a structure, in order. Raises ValueError for a missing value, in upstream's words without `asn1: `."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def ended(self) -> bool:
        return self._at == len(self._data)

    def read(self, wanted: int | None, name: str) -> bytes:
        """The contents of the next value, whose tag must be `wanted` (None: any); `name` is the name of its type in Go."""
        if self.ended:
            raise ValueError("syntax error: sequence truncated")
        first = self._byte()
        kind, compound, tag = first >> 6, bool(first & 0x20), first & 0x1F
        if tag == 0x1F:
            raise ValueError("syntax error: non-minimal tag")
        length = self._length()
        if wanted is not None and (kind, tag, compound) != (0, wanted, wanted == _SEQUENCE):
            tag_text = f"{{class:{kind} tag:{tag} length:{length} isCompound:{str(compound).lower()}}}"
            raise ValueError(
                f"structure error: tags don't match ({wanted} vs {tag_text}) {_PARAMETERS} {name} @{self._at}"
            )
        begin, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError("syntax error: data truncated")
        return self._data[begin : self._at]

    def _byte(self) -> int:
        if self.ended:
            raise ValueError("syntax error: truncated tag or length")
        self._at += 1
        return self._data[self._at - 1]

    def _length(self) -> int:
        first = self._byte()
        if not first & 0x80:
            return first
        if first == 0x80:
            raise ValueError("syntax error: indefinite length found (not DER)")
        length = 0
        for _ in range(first & 0x7F):
            byte = self._byte()
            if length >= _WHOLE:
                raise ValueError("structure error: length too large")
            length = length << 8 | byte
            if not length:
                raise ValueError("structure error: superfluous leading zeros in length")
        if length < 0x80:
            raise ValueError("structure error: non-minimal length")
        return length


def _check_integer(value: bytes) -> None:
    if not value:
        raise ValueError("structure error: empty integer")
    if not _is_minimal(value):
        raise ValueError("structure error: integer not minimally-encoded")


# ---------------------------------------------------------------- certificates


def certificate_problem(der: bytes) -> tuple[str, int]:
    """The problem of the structure of the first certificate, empty if it has all parts, and the certificate's size."""
    whole = _taken(der, _MANY)
    if whole is None:
        return "x509: malformed certificate", 0
    contents, rest = whole
    return _parts_problem(contents), len(der) - len(rest)


def _parts_problem(contents: bytes) -> str:
    outer = _taken(contents, _MANY)
    if outer is None:
        return "x509: malformed tbs certificate"
    request_info, signing = outer
    if request_info[:1] == bytes((_VERSION,)):
        version = _taken(request_info, _VERSION)
        number = _taken(version[0], _INTEGER) if version else None
        if version is None or number is None or not _is_minimal(number[0]) or number[0][0] & 0x80:
            return "x509: malformed version"
        if int.from_bytes(number[0]) > 2:
            return "x509: invalid version"
        request_info = version[1]
    serial = _taken(request_info, _INTEGER)
    if serial is None or not _is_minimal(serial[0]):
        return "x509: malformed serial number"
    if serial[0][0] & 0x80:
        return "x509: negative serial number"
    inner = _taken(serial[1], _MANY)
    if inner is None:
        return "x509: malformed signature algorithm identifier"
    algorithm = _taken(signing, _MANY)
    if algorithm is None:
        return "x509: malformed algorithm identifier"
    if algorithm[0] != inner[0]:
        return "x509: inner and outer signature algorithm identifiers don't match"
    request_info = inner[1]
    for problem in ("issuer", "validity", "issuer", "spki"):
        part = _taken(request_info, _MANY)
        if part is None:
            return f"x509: malformed {problem}"
        request_info = part[1]
    signature = _taken(algorithm[1], _BITS)
    return "x509: malformed signature" if signature is None or not signature[0] or signature[0][0] > 7 else ""


def _taken(data: bytes, tag: int) -> tuple[bytes, bytes] | None:
    """The contents of the first value and the rest; None if the value has another tag or isn't complete."""
    if len(data) < 2 or data[0] != tag:
        return None
    head, length = 2, data[1]
    if length & 0x80:
        head += length & 0x7F
        digits = data[2:head]
        length = int.from_bytes(digits)
        if not 1 <= len(digits) <= 4 or len(data) < head or length < 0x80 or not digits[0]:
            return None
    end = head + length
    return (data[head:end], data[end:]) if end <= len(data) else None


def _is_minimal(value: bytes) -> bool:
    """Reports whether an integer has no superfluous bytes."""
    if len(value) < 2:
        return bool(value)
    return not ((value[0] == 0 and value[1] < 0x80) or (value[0] == 0xFF and value[1] >= 0x80))
