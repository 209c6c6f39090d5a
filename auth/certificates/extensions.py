"""The extensions of a certificate that Go knows, and whether it knows all that are critical.

Upstream: crypto/x509/parser.go {processExtensions}.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from fakeapiserver.apimachinery.go.url import parse as parse_url
from fakeapiserver.auth.certificates.der import BOOLEAN, INTEGER, OCTET_STRING, SEQUENCE, Malformed, Reader
from fakeapiserver.auth.certificates.hosts import host_of, labels_of

EMAIL: Final = 0x81
DNS: Final = 0x82
URI: Final = 0x86
ADDRESS: Final = 0x87
Name = tuple[int, bytes]  # its tag, and what it is

_CERT_SIGN: Final = 0x04


@dataclass
class Extensions:
    """Without basic constraints `authority` is None. Policies' numbers not said are None, `path_length` is -1, and `key_usage` 0."""

    authority: bool | None = None
    path_length: int = -1
    key_usage: int = 0
    usages: tuple[str, ...] = ()
    alternatives: bytes = b""
    names: tuple[Name, ...] = ()
    permitted: tuple[Name, ...] = ()
    excluded: tuple[Name, ...] = ()
    policies: tuple[str, ...] = ()
    mappings: tuple[tuple[str, str], ...] = ()
    explicit_policy: int | None = None
    inhibit_mapping: int | None = None
    inhibit_any: int | None = None
    unhandled: bool = False

    @property
    def forbids_signing(self) -> bool:
        return self.key_usage != 0 and not self.key_usage & _CERT_SIGN


def read_extensions(reader: Reader) -> Extensions:
    """Raises Malformed."""
    extensions = Extensions()
    seen: set[str] = set()
    while reader:
        item = reader.inner()
        oid = item.oid()
        critical = item.boolean() if item.next_is(BOOLEAN) else False
        value = item.content(OCTET_STRING)
        if oid in seen:
            raise Malformed("x509: certificate contains duplicate extensions")
        seen.add(oid)
        if critical and oid in _NEVER_CRITICAL:
            raise Malformed("x509: extension incorrectly marked critical")
        read = _READERS.get(oid)
        handled = read is not None and read(Reader(value), extensions)
        extensions.unhandled |= critical and not handled
    return extensions


def _key_usage(reader: Reader, extensions: Extensions) -> bool:
    data = reader.bits()
    extensions.key_usage = data[0] | (data[1] & 0x80) << 1 if len(data) > 1 else data[0] if data else 0
    return True


def _basic_constraints(reader: Reader, extensions: Extensions) -> bool:
    inner = reader.inner()
    extensions.authority = inner.boolean() if inner.next_is(BOOLEAN) else False
    if inner.next_is(INTEGER):
        extensions.path_length = inner.int64()
    return True


def _alternatives(reader: Reader, extensions: Extensions) -> bool:
    """Handled only with a name of a kind that Go knows."""
    extensions.alternatives = reader.content(SEQUENCE)
    inner = Reader(extensions.alternatives)
    names: list[Name] = []
    while inner:
        tag, data = inner.any()
        if tag in (EMAIL, DNS, URI):
            _ascii(data)
        if tag == URI:
            _check_uri(data.decode())
        elif tag == ADDRESS and len(data) not in (4, 16):
            raise Malformed(f"x509: cannot parse IP address of length {len(data)}")
        if tag in (EMAIL, DNS, URI, ADDRESS):
            names.append((tag, data))
    extensions.names = tuple(names)
    return bool(names)


def _check_uri(text: str) -> None:
    try:
        host = host_of(parse_url(text))
    except ValueError as error:
        raise Malformed(f"x509: cannot parse URI: {error}") from None
    if host and labels_of(host) is None:
        raise Malformed("x509: cannot parse URI: invalid domain")


def _name_constraints(reader: Reader, extensions: Extensions) -> bool:
    inner = reader.inner()
    permitted, excluded = inner.optional(0xA0), inner.optional(0xA1)
    if inner or not (permitted or excluded):
        raise Malformed("x509: invalid NameConstraints extension")
    lists = [list(_subtrees(Reader(part or b""))) for part in (permitted, excluded)]
    known = [tuple(name for name in names if name[0] in _CONSTRAINTS) for names in lists]
    extensions.permitted, extensions.excluded = known
    return sum(map(len, lists)) == sum(map(len, known))


def _subtrees(reader: Reader) -> Iterator[Name]:
    while reader:
        tag, data = reader.inner().any()
        check = _CONSTRAINTS.get(tag)
        if check is not None:
            check(data)
        yield tag, data


def _check_domain(data: bytes) -> None:
    if labels_of(_ascii(data).removeprefix(".")) is None:
        raise Malformed("x509: failed to parse domain constraint")


def _check_email(data: bytes) -> None:
    if b"@" not in data:
        _check_domain(data)


def _check_uri_domain(data: bytes) -> None:
    _check_domain(data)
    try:
        ip_address(data.decode())
    except ValueError:
        return
    raise Malformed("x509: failed to parse URI constraint: cannot be IP address")


def _check_network(data: bytes) -> None:
    size = len(data) // 2
    ones = f"{int.from_bytes(data[size:]):b}".zfill(8 * size)
    if len(data) not in (8, 32) or "01" in ones:
        raise Malformed("x509: IP constraint contained invalid mask")


def _distribution_points(reader: Reader, _: Extensions) -> bool:
    points = reader.inner()
    while points:
        point = points.inner()
        name = point.optional(0xA0)
        if name is not None:
            Reader(name).content(0xA0)
    return True


def _usages(reader: Reader, extensions: Extensions) -> bool:
    extensions.usages = _oids(reader.inner())
    return True


def _oids(reader: Reader) -> tuple[str, ...]:
    found: list[str] = []
    while reader:
        found.append(reader.oid())
    return tuple(found)


def _authority_key(reader: Reader, _: Extensions) -> bool:
    inner = reader.inner()
    inner.optional(0x80)
    return False


def _subject_key(reader: Reader, _: Extensions) -> bool:
    reader.content(OCTET_STRING)
    return False


def _information_access(reader: Reader, _: Extensions) -> bool:
    descriptions = reader.inner()
    while descriptions:
        description = descriptions.inner()
        description.oid()
        description.optional(URI)
    return False


def _policies(reader: Reader, extensions: Extensions) -> bool:
    inner = reader.inner()
    found: list[str] = []
    while inner:
        found.append(inner.inner().oid())
    if len(set(found)) < len(found):
        raise Malformed("x509: invalid certificate policies")
    extensions.policies = tuple(found)
    return True


def _mappings(reader: Reader, extensions: Extensions) -> bool:
    inner = reader.inner()
    found: list[tuple[str, str]] = []
    while inner:
        mapping = inner.inner()
        found.append((mapping.oid(), mapping.oid()))
    extensions.mappings = tuple(found)
    return True


def _policy_constraints(reader: Reader, extensions: Extensions) -> bool:
    inner = reader.inner()
    if inner.next_is(0x80):
        extensions.explicit_policy = inner.int64(0x80)
    if inner.next_is(0x81):
        extensions.inhibit_mapping = inner.int64(0x81)
    return True


def _inhibit_any(reader: Reader, extensions: Extensions) -> bool:
    extensions.inhibit_any = reader.int64()
    return True


def _ascii(data: bytes) -> str:
    if not data.isascii():
        raise Malformed("x509: malformed name: not ASCII")
    return data.decode()


_CONSTRAINTS: Final[dict[int, Callable[[bytes], None]]] = {
    EMAIL: _check_email,
    DNS: _check_domain,
    URI: _check_uri_domain,
    ADDRESS: _check_network,
}
_AUTHORITY_KEY: Final = "2.5.29.35"
_SUBJECT_KEY: Final = "2.5.29.14"
_INFORMATION_ACCESS: Final = "1.3.6.1.5.5.7.1.1"
_NEVER_CRITICAL: Final = frozenset({_AUTHORITY_KEY, _SUBJECT_KEY, _INFORMATION_ACCESS})
_READERS: Final[dict[str, Callable[[Reader, Extensions], bool]]] = {
    "2.5.29.15": _key_usage,
    "2.5.29.19": _basic_constraints,
    "2.5.29.17": _alternatives,
    "2.5.29.30": _name_constraints,
    "2.5.29.31": _distribution_points,
    "2.5.29.32": _policies,
    "2.5.29.33": _mappings,
    _AUTHORITY_KEY: _authority_key,
    "2.5.29.36": _policy_constraints,
    "2.5.29.37": _usages,
    _SUBJECT_KEY: _subject_key,
    "2.5.29.54": _inhibit_any,
    _INFORMATION_ACCESS: _information_access,
}
