"""Rules for fields that several kinds have: ports, addresses, labels, numbers.

Upstream: k8s.io/apimachinery/pkg/util/validation/{validation.go,ip.go}, pkg/apis/core/validation/validation.go.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from ipaddress import IPv6Address, ip_network
from math import ceil, floor
from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.ip_addresses import canonical_ip, unzoned_address, unzoned_network
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.quantity import amount

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
_MAX_PORT_NAME: Final = 15
_SIGN: Final = 1 << 63  # the highest bit of an int64
_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_LEADING_ZEROS: Final = re.compile(r"(?<![\d])0+(?=\d)")
_LETTER: Final = re.compile("[a-z]")
_HEADER: Final = re.compile("[-A-Za-z0-9]+")
_HEADER_RULE: Final = "a valid HTTP header must consist of alphanumeric characters or '-'"
_MAX_SUBDOMAIN: Final = 253
_UNDERSCORED_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LONG_NAME: Final = 64 * 1024
_UNDERSCORED: Final = re.compile(rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*")
_UNDERSCORED_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_VARIABLE_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def is_valid_port_name(name: str) -> list[str]:
    """The problems of a port's name (an IANA service name)."""
    errors = [f"must be no more than {_MAX_PORT_NAME} characters"] if len(name.encode()) > _MAX_PORT_NAME else []
    if not _PORT_NAME.fullmatch(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def port_errors(port: int, path: Path) -> ErrorList:
    """The errors in a port number."""
    return [] if 1 <= port <= 65535 else [field.invalid(path, port, _PORT_RANGE)]


def port_or_name_errors(port: int | str, path: Path) -> ErrorList:
    if isinstance(port, int):
        return port_errors(port, path)
    return [field.invalid(path, port, problem) for problem in is_valid_port_name(port)]


def protocol_errors(protocol: str, path: Path) -> ErrorList:
    return choice_errors(protocol, PROTOCOLS, path)


def choice_errors(value: str, choices: Sequence[str], path: Path) -> ErrorList:
    """The errors in a required value that must be one of `choices`."""
    if not value:
        return [field.required(path)]
    return [] if value in choices else [field.not_supported(path, value, choices)]


def name_errors(value: str, check: Callable[[str], list[str]], path: Path) -> ErrorList:
    return [field.invalid(path, value, problem) for problem in check(value)]


def required_segment_errors(value: str, path: Path) -> ErrorList:
    """The errors in a required value that must fit into one segment of a path."""
    return name_errors(value, names.path_segment_name, path) if value else [field.required(path)]


def required_label_errors(value: str, path: Path) -> ErrorList:
    """The errors in a required DNS label."""
    return name_errors(value, names.is_dns1123_label, path) if value else [field.required(path)]


def non_negative_errors(value: int, path: Path) -> ErrorList:
    return [field.invalid(path, value, "must be greater than or equal to 0")] if value < 0 else []


def non_negative_amount_errors(quantity: str, path: Path) -> ErrorList:
    """The error for a negative quantity."""
    detail = "must be greater than or equal to 0"
    return [field.invalid(path, quantity, detail)] if amount(quantity) < 0 else []


def positive_amount_errors(quantity: str, path: Path) -> ErrorList:
    return [field.invalid(path, quantity, "must be greater than zero")] if amount(quantity) <= 0 else []


def basic_resource_errors(quantity: str, path: Path) -> ErrorList:
    """The error for a negative quantity, which is shown as a whole number (validateBasicResource), of which Go keeps 64 bits."""
    parsed_amount = amount(quantity)
    whole = ((floor(parsed_amount) if parsed_amount < 0 else ceil(parsed_amount)) + _SIGN) % (2 * _SIGN) - _SIGN
    return [field.invalid(path, whole, "must be a valid resource quantity")] if whole < 0 else []


def descending_path_errors(text: str, path: Path) -> ErrorList:
    """The errors in a relative path, which must not lead above its start (validateLocalDescendingPath)."""
    errors = [field.invalid(path, text, "must be a relative path")] if text.startswith("/") else []
    return errors + no_backsteps_errors(text, path)


def no_backsteps_errors(text: str, path: Path) -> ErrorList:
    return [field.invalid(path, text, "must not contain '..'")] if ".." in text.split("/") else []


def local_path_errors(text: str, path: Path) -> ErrorList:
    """The errors in a path as `descending_path_errors` checks it, which also must not have a name that the kubelet reserves
    (ValidateLocalNonReservedPath)."""
    errors = descending_path_errors(text, path)
    if text.startswith("..") and not text.startswith("../"):
        errors.append(field.invalid(path, text, "must not start with '..'"))
    return errors


def is_http_header_name(name: str) -> list[str]:
    return [] if _HEADER.fullmatch(name) else [names.regex_error(_HEADER_RULE, _HEADER.pattern, "X-Header-Name")]


def is_subdomain_with_underscore(name: str) -> list[str]:
    """The problems of a DNS subdomain whose labels may have underscores, as those of services."""
    errors = [names.max_length_error(_MAX_SUBDOMAIN, "characters")] if len(name.encode()) > _MAX_SUBDOMAIN else []
    # One match of a very long text would let no other thread run.
    if not all(_UNDERSCORED.fullmatch(part) for part in ([name] if len(name) < _LONG_NAME else name.split("."))):
        text = names.regex_error(_UNDERSCORED_RULE, _UNDERSCORED.pattern, "example.com")
        errors.append(Message(text, "subdomain.underscore"))
    return errors


def is_environment_variable_name(name: str) -> list[str]:
    """The problems of the name of an environment variable, by the relaxed rule (IsRelaxedEnvVarName)."""
    return [] if name.isascii() and name.isprintable() and "=" not in name else [_VARIABLE_RULE]


def duplicate_errors(value: str, seen: set[str], path: Path) -> ErrorList:
    """The error for a repeated value; `seen` has the earlier values and gets this one."""
    if value in seen:
        return [field.duplicate(path, value)]
    seen.add(value)
    return []


# What is wrong with an address only where they are read strictly (StrictIPCIDRValidation).
STRICT_ONLY: Final = frozenset(
    {
        "must not be an IPv4-mapped IPv6 address",
        "must not have leading 0s",
        "must not have leading 0s in IP or prefix length",
        "must not have an IPv4-mapped IPv6 address",
        "must not have bits set beyond the prefix length",
    }
)


def ip_errors(ip: str, path: Path, known: Collection[str] = ()) -> ErrorList:
    """The errors in an address. Addresses in `known`, which were accepted before, stay valid."""
    if ip in known:
        return []
    if _parses(unzoned_address, ip):
        mapped = ":" in ip and IPv6Address(ip).ipv4_mapped
        return [field.invalid(path, ip, "must not be an IPv4-mapped IPv6 address")] if mapped else []
    if _LEADING_ZEROS.search(ip) and _parses(unzoned_address, _LEADING_ZEROS.sub("", ip)):
        return [field.invalid(path, ip, "must not have leading 0s")]
    return [field.invalid(path, ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]


def cidr_errors(text: str, path: Path, known: Collection[str] = ()) -> ErrorList:
    """The errors in a subnet, by the rules of `ip_errors`."""
    if text in known:
        return []
    if not is_cidr(text):
        return [field.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    address = text.partition("/")[0]
    if _without_leading_zeros(text) != text:
        return [field.invalid(path, text, "must not have leading 0s in IP or prefix length")]
    if ":" in address and IPv6Address(address).ipv4_mapped:
        return [field.invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
    if not _parses(ip_network, text):
        return [field.invalid(path, text, "must not have bits set beyond the prefix length")]
    return []


def interface_address_errors(text: str, path: Path) -> ErrorList:
    """The errors in an interface's address with its prefix length, which must be in canonical form."""
    address, _, length = text.partition("/")
    ip, bits = canonical_ip(address), _LEADING_ZEROS.sub("", length)
    if (
        not ip
        or not (bits.isascii() and bits.isdigit())
        or len(bits) > 3
        or int(bits) > (128 if ":" in address else 32)
    ):
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [field.invalid(path, text, detail)]
    shorter = 96 if ":" in address and ":" not in ip and int(bits) > 32 else 0
    return _canonical_errors(text, f"{ip}/{int(bits) - shorter}", path)


def canonical_ip_errors(ip: str, path: Path) -> ErrorList:
    """The errors in an address of a newer field, which must be in canonical form."""
    errors = ip_errors(ip, path)
    return errors or _canonical_errors(ip, canonical_ip(ip), path)


def canonical_cidr_errors(text: str, path: Path) -> ErrorList:
    """The errors in a subnet, by the rules of `canonical_ip_errors`."""
    errors = cidr_errors(text, path)
    return errors or _canonical_errors(text, str(ip_network(text)), path)


def is_cidr(text: str) -> bool:
    """Reports whether the text is a subnet, maybe with bits beyond its prefix or with leading zeros."""
    return text.partition("/")[2].isdigit() and _parses(unzoned_network, _without_leading_zeros(text))


def _without_leading_zeros(cidr: str) -> str:
    address, _, length = cidr.partition("/")
    return f"{_LEADING_ZEROS.sub('', address) if '.' in address else address}/{_LEADING_ZEROS.sub('', length)}"


def _canonical_errors(text: str, canonical: str, path: Path) -> ErrorList:
    if text == canonical:
        return []
    return [field.invalid(path, text, f"must be in canonical form ({go_quote(canonical)})")]


def endpoint_ip_errors(text: str, path: Path) -> ErrorList:
    """The errors in an address that traffic is sent to (ValidateEndpointIP)."""
    plain = text if ":" in text else _LEADING_ZEROS.sub("", text)
    if not _parses(unzoned_address, plain):
        return [field.invalid(path, text, "must be a valid IP address")]
    ip = unzoned_address(plain)
    problems = []
    if ip.is_unspecified:
        problems.append(f"may not be unspecified ({text})")
    if ip.is_loopback:
        problems.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if ip.is_link_local:
        problems.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if ip.is_multicast and text.lower().startswith(("224.0.0.", "ff02:")):
        problems.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return [field.invalid(path, text, detail) for detail in problems]


def selector_errors(labels: Mapping[str, str] | None, path: Path) -> ErrorList:
    return names.validate_labels(labels or {}, path)


def _parses(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
