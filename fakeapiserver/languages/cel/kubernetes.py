"""Kubernetes' own functions: quantities, versions, addresses, networks, URLs and named formats.

Upstream: k8s.io/apiserver/pkg/cel/library/{quantity,semverlib,ip,cidr,urls,format}.go, k8s.io/apiserver/pkg/cel/*.go
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, total_ordering
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.go_address import address_problem
from fakeapiserver.apimachinery.go_url import ESCAPED, SCHEME, request_uri_problem
from fakeapiserver.apimachinery.quantity import parse as parse_quantity
from fakeapiserver.apimachinery.schema.formats import FORMATS
from fakeapiserver.apimachinery.strconv import parse_uint
from fakeapiserver.languages.cel.errors import CelError, no_such_overload
from fakeapiserver.languages.cel.types import Type, struct
from fakeapiserver.languages.cel.values import NONE, Optional, equal, int64

Function = Callable[..., Any]

# -------------------------------------------------------------- quantities


class Quantity(Struct, frozen=True, eq=False):
    """`value` times ten to the `exponent`. `is_small`: upstream keeps it in 64 bits, which is what makes an integer of it.
    `is_sum`: a result of adding, which upstream has another Go type for, and finds no way to compare with."""

    cel_type: ClassVar[Type] = struct("kubernetes.Quantity")
    value: int
    exponent: int = 0
    is_small: bool = True
    is_sum: bool = False

    @property
    def amount(self) -> Fraction:
        return self.value * Fraction(10) ** self.exponent

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity) and other.is_sum:
            raise no_such_overload()
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    @property
    def whole(self) -> int | None:
        """Returns upstream's AsInt64, or None."""
        if not self.is_small or self.exponent < 0:
            return None
        number = self.value * 10**self.exponent
        return number if _is_int64(number) else None

    def plus(self, other: "Quantity", sign: int) -> "Quantity":
        added = other.value * sign
        if self.is_small and other.is_small:
            if added == 1 << 63:
                added = -added  # of all integers the least is its own negative
            if not added:
                return self
            if not self.value:
                return Quantity(added, other.exponent)
        exponent = min(self.exponent, other.exponent)
        parts = self.value * 10 ** (self.exponent - exponent), added * 10 ** (other.exponent - exponent)
        fits_in = self.is_small and other.is_small and all(map(_is_int64, (*parts, sum(parts))))
        return Quantity(sum(parts), exponent, fits_in)


def _is_int64(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


_WRITTEN: Final = re.compile(r"[+-]?0*(\d*)(?:\.(\d*))?(.*)", re.A | re.S)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = -9
_BELOW: Final = {"n": -9, "u": -6, "m": -3}
# Digits that upstream takes to fit into 64 bits.
_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14


def _quantity(text: str) -> Quantity:
    try:
        quantity = parse_quantity(text)
    except ValueError as error:
        raise CelError(str(error)) from None
    match = _WRITTEN.fullmatch(text.strip())
    assert match is not None
    whole, fraction, suffix = match[1] or "0", match[2] or "", match[3]
    if quantity.family == "BinarySI":
        step = _BINARY.index(suffix)
        if not fraction and len(whole) + 3 * step <= _BINARY_DIGITS:
            return Quantity(int(quantity.amount))
        capped = min(abs(quantity.amount), Fraction((1 << 63) - 1))
        return _in_nanos(capped if quantity.amount > 0 else -capped)
    # How many digits stand behind the last one that is written.
    digits = int(whole + fraction)
    exponent = _BELOW.get(suffix, 0) - len(fraction)
    if digits:
        size = abs(quantity.amount) / digits
        exponent = len(str(size.numerator)) - len(str(size.denominator))
    if len(whole) + len(fraction) <= _DIGITS and exponent >= _NANO:
        return Quantity(digits if quantity.amount > 0 else -digits, exponent)
    return _in_nanos(quantity.amount)


def _in_nanos(amount: Fraction) -> Quantity:
    """Rounded away from zero."""
    size = -(-abs(amount.numerator) * 10**-_NANO // amount.denominator)
    return Quantity(size if amount > 0 else -size, _NANO, is_small=False)


def _is(parse: Callable[..., Any]) -> Function:
    def is_valid(*args: Any) -> bool:
        try:
            parse(*args)
        except CelError:
            return False
        return True

    return is_valid


def _quantity_int(quantity: Quantity) -> int:
    if quantity.whole is None:
        raise CelError("cannot convert value to integer")
    return quantity.whole


def _summed(sign: int) -> Function:
    def add(a: Quantity, b: Quantity | int) -> Quantity:
        return replace(a.plus(b if isinstance(b, Quantity) else Quantity(b), sign), is_sum=True)

    return add


def _order(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


_QUANTITIES: Final[dict[str, Function]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": _is(_quantity),
    "quantity_sign": lambda a: _order(a.amount, 0),
    "quantity_is_integer": lambda a: a.whole is not None,
    "quantity_get_int": _quantity_int,
    "quantity_get_float": lambda a: float(a.value) * 10.0**a.exponent if a.exponent else float(a.value),
    "quantity_is_greater_than": lambda a, b: a.amount > b.amount,
    "quantity_is_less_than": lambda a, b: a.amount < b.amount,
    "quantity_compare_to": lambda a, b: _order(a.amount, b.amount),
    "quantity_add": _summed(1),
    "quantity_add_int": _summed(1),
    "quantity_sub": _summed(-1),
    "quantity_sub_int": _summed(-1),
}

# ---------------------------------------------------------------- versions


@total_ordering
class Semver(Struct, frozen=True):
    """A semantic version. `build` does not count in the order, but versions that differ in it are equal."""

    cel_type: ClassVar[Type] = struct("kubernetes.Semver")
    numbers: tuple[int, int, int]
    pre: tuple[int | str, ...]

    def _key(self) -> tuple[Any, ...]:
        return (self.numbers, not self.pre, [(isinstance(p, str), p) for p in self.pre])

    def __lt__(self, other: "Semver") -> bool:
        return self._key() < other._key()


_PRE: Final = re.compile(r"[0-9A-Za-z-]+")


def _semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _version_number(parts[0], "Major"), _version_number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, pre = rest.partition("-")
    patch = _version_number(patch_text, "Patch")
    identifiers = tuple(map(_pre_release, pre.split("."))) if dash else ()
    for piece in build.split(".") if plus else ():
        if not piece:
            raise CelError("Build meta data is empty")
        if not _PRE.fullmatch(piece):
            raise CelError(f"Invalid character(s) found in build meta data {go_quote(piece)}")
    return Semver((major, minor, patch), identifiers)


def _version_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()) and text:
        raise CelError(f"Invalid character(s) found in {name.lower()} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name} number must not contain leading zeroes {go_quote(text)}")
    try:
        return parse_uint(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def _pre_release(text: str) -> int | str:
    if not text:
        raise CelError("Prerelease is empty")
    if text.isascii() and text.isdigit():
        if len(text) > 1 and text[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}")
        try:
            return parse_uint(text)
        except ValueError as error:
            raise CelError(str(error)) from None
    if not _PRE.fullmatch(text):
        raise CelError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def _without_zeros(part: str) -> str:
    """Removes leading zeros; one stays before a letter and at the end."""
    rest = part.lstrip("0")
    return rest if rest[:1].isascii() and rest[:1].isdigit() else f"0{rest}"


def _normalized(text: str) -> str:
    """Without a leading v and zeros, filled up to three numbers."""
    parts = [_without_zeros(part) if len(part) > 1 else part for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3] if len(parts) < 3 else parts)


_VERSIONS: Final[dict[str, Function]] = {
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": _is(_semver),
    "is_semver_string_bool": _is(_semver),
    "semver_major": lambda a: int64(a.numbers[0]),
    "semver_minor": lambda a: int64(a.numbers[1]),
    "semver_patch": lambda a: int64(a.numbers[2]),
    "semver_is_greater_than": lambda a, b: a > b,
    "semver_is_less_than": lambda a, b: a < b,
    "semver_compare_to": _order,
}

# ---------------------------------------------------------------- networks


class IP(Struct, frozen=True):
    cel_type: ClassVar[Type] = struct("net.IP")
    address: ipaddress.IPv4Address | ipaddress.IPv6Address

    def cel_size(self) -> int:
        """Bytes, as upstream's Sizer."""
        return self.address.max_prefixlen // 8


class CIDR(Struct, frozen=True):
    cel_type: ClassVar[Type] = struct("net.CIDR")
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    def cel_size(self) -> int:
        """Whole bytes of the prefix."""
        return -(-self.bits // 8)


def _ip(text: str) -> IP:
    if problem := address_problem(text):
        shown = go_quote(text)
        raise CelError(f"IP Address {shown} parse error during conversion from string: ParseAddr({shown}): {problem}")
    if "%" in text:
        raise CelError(f"IP address {go_quote(text)} with zone value is not allowed")
    address = ipaddress.ip_address(text)
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


def _is_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


_CIDR_ERROR: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> CIDR:
    if problem := _prefix_problem(text):
        raise CelError(f"{_CIDR_ERROR}{_CIDR_ERROR}netip.ParsePrefix({go_quote(text)}): {problem}")
    host, _, bits = text.rpartition("/")
    address = ipaddress.ip_address(host)
    if _is_mapped(address):
        raise CelError(f"{_CIDR_ERROR}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDR(address, int(bits))


def _prefix_problem(text: str) -> str:
    host, slash, bits = text.rpartition("/")
    if not slash:
        return "no '/'"
    if problem := address_problem(host):
        return f"ParseAddr({go_quote(host)}): {problem}"
    if "%" in host:
        return "IPv6 zones cannot be present in a prefix"
    if (len(bits) > 1 and not "1" <= bits[0] <= "9") or not (bits.isascii() and bits.isdigit()):
        return f"bad bits after slash: {go_quote(bits)}"
    return "" if len(bits) <= 3 and int(bits) <= (128 if ":" in host else 32) else "prefix length out of range"


def _contains_ip(a: CIDR, b: IP) -> bool:
    return a.address.version == b.address.version and b.address in a.network


def _contains_ip_text(a: CIDR, b: str) -> bool:
    try:
        return _contains_ip(a, _ip(b))
    except CelError:
        raise no_such_overload() from None


def _contains_cidr(a: CIDR, b: CIDR) -> bool:
    return a.address.version == b.address.version and a.bits <= b.bits and b.address in a.network


def _contains_cidr_text(a: CIDR, b: str) -> bool:
    return _contains_cidr(a, _cidr(b))


def _is_global(a: IP) -> bool:
    broadcast = str(a.address) == "255.255.255.255"
    plain = a.address.is_unspecified or a.address.is_loopback or a.address.is_multicast or _link_local(a)
    return not (broadcast or plain)


def _link_local(a: IP) -> bool:
    return a.address in ipaddress.ip_network("169.254.0.0/16" if a.address.version == 4 else "fe80::/10")


def _link_local_multicast(a: IP) -> bool:
    if a.address.version == 4:
        return a.address in ipaddress.ip_network("224.0.0.0/24")
    return a.address.packed[0] == 0xFF and a.address.packed[1] & 0x0F == 0x02


_NETWORKS: Final[dict[str, Function]] = {
    "string_to_ip": _ip,
    "is_ip": _is(_ip),
    "ip_is_canonical": lambda a: str(_ip(a).address) == a,
    "ip_to_string": lambda a: str(a.address),
    "ip_family": lambda a: a.address.version,
    "ip_is_unspecified": lambda a: a.address.is_unspecified,
    "ip_is_loopback": lambda a: a.address.is_loopback,
    "ip_is_link_local_multicast": _link_local_multicast,
    "ip_is_link_local_unicast": _link_local,
    "ip_is_global_unicast": _is_global,
    "string_to_cidr": _cidr,
    "is_cidr": _is(_cidr),
    "cidr_to_string": lambda a: f"{a.address}/{a.bits}",
    "cidr_ip": lambda a: IP(a.address),
    "cidr_prefix_length": lambda a: a.bits,
    "cidr_masked": lambda a: CIDR(a.network.network_address, a.bits),
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr": _contains_cidr,
    "cidr_contains_cidr_string": _contains_cidr_text,
}

# -------------------------------------------------------------------- URLs


class URL(Struct, frozen=True, dict=True):
    """Parts as Go's url.URL has them, `path` and `query` as written."""

    cel_type: ClassVar[Type] = struct("kubernetes.URL")
    scheme: str
    host: str
    path: str
    query: str
    text: str

    @cached_property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.rpartition(":")[0] if ":" in host else host

    @property
    def port(self) -> str:
        after = self.host.rpartition("]")[2] if self.host.startswith("[") else self.host
        return after.rpartition(":")[2] if ":" in after else ""


def _url(text: str) -> URL:
    if problem := request_uri_problem(text):
        raise CelError(f"URL parse error during conversion from string: {problem}")
    body = text.partition("#")[0]
    match = SCHEME.match(body)
    scheme, rest = (match.group(1).lower(), body[match.end() :]) if match else ("", body)
    rest, _, query = rest.partition("?")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, rest = authority.rpartition("@")[2], slash + path
        host = unquote_to_bytes(host).decode(errors="replace")
    elif not rest.startswith("/") and scheme:
        rest = ""
    return URL(scheme, host, rest, query, text)


def _escaped_path(url: URL) -> str:
    return quote(url.path, safe="/%:@&=+$,;~!*'()[]-_.")


def _query(url: URL) -> dict[str, list[str]]:
    parameters: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or ESCAPED.search(pair):
            continue
        key, _, value = pair.replace("+", " ").partition("=")
        plain = [unquote_to_bytes(part).decode(errors="replace") for part in (key, value)]
        parameters.setdefault(plain[0], []).append(plain[1])
    return parameters


_URLS: Final[dict[str, Function]] = {
    "string_to_url": _url,
    "is_url_string": lambda a: not request_uri_problem(a),
    "url_get_scheme": lambda a: a.scheme,
    "url_get_host": lambda a: a.host,
    "url_get_hostname": lambda a: a.hostname,
    "url_get_port": lambda a: a.port,
    "url_get_escaped_path": _escaped_path,
    "url_get_query": _query,
}

# ----------------------------------------------------------------- formats


@dataclass(frozen=True, slots=True)
class Format:
    """`regex_size` is what its cost is reckoned by."""

    cel_type: ClassVar[Type] = struct("kubernetes.NamedFormat")
    name: str
    problems: Callable[[str], list[str]] = field(compare=False)
    regex_size: int = field(compare=False)


def _strfmt(name: str, problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if FORMATS[name](text) else [problem]


_NAMED: Final = {
    "dns1123Label": Format("DNS1123Label", lambda text: names.name_is_dns_label(text, False), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", lambda text: names.name_is_dns_subdomain(text, False), 60),
    "dns1035Label": Format("DNS1035Label", lambda text: names.name_is_dns1035_label(text, False), 30),
    "qualifiedName": Format("QualifiedName", names.is_qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", lambda text: names.name_is_dns_label(text, True), 30),
    "dns1123SubdomainPrefix": Format(
        "DNS1123SubdomainPrefix", lambda text: names.name_is_dns_subdomain(text, True), 60
    ),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", lambda text: names.name_is_dns1035_label(text, True), 30),
    "labelValue": Format("LabelValue", names.is_valid_label_value, 40),
    "uri": Format("URI", lambda text: [problem] if (problem := request_uri_problem(text)) else [], 1103),
    "uuid": Format("uuid", _strfmt("uuid", "does not match the UUID format"), 70),
    "byte": Format("byte", _strfmt("byte", "invalid base64"), 84),
    "date": Format("date", _strfmt("date", "invalid date"), 71),
    "datetime": Format("datetime", _strfmt("datetime", "invalid datetime"), 71),
}


def _validated(a: Format, text: str) -> Optional:
    problems = list(map(str, a.problems(text)))
    return Optional(True, problems) if problems else NONE


_MOST_ATTRIBUTES: Final = 48


def _includes(target: Any, value: Any) -> bool:
    """Reports whether a device's attribute is a list that has a value, or the value itself."""
    if not isinstance(target, list | tuple):
        return equal(target, value)
    if len(target) > _MOST_ATTRIBUTES and not any(equal(item, value) for item in target[:_MOST_ATTRIBUTES]):
        raise CelError(f"'includes' function cannot be applied to lists longer than {_MOST_ATTRIBUTES} values")
    return any(equal(item, value) for item in target)


FUNCTIONS: Final[dict[str, Function]] = {
    "dra_includes_dyn_dyn": _includes,
    **_QUANTITIES,
    **_VERSIONS,
    **_NETWORKS,
    **_URLS,
    **{f"format.{name}": lambda found=found: found for name, found in _NAMED.items()},
    "format-named": lambda a: Optional(True, _NAMED[a]) if a in _NAMED else NONE,
    "format-validate": _validated,
}
