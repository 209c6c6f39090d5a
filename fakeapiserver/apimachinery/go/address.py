"""The errors of Go's parser of IP addresses.

Upstream: net/netip/netip.go (ParseAddr)
"""

import re

from fakeapiserver.apimachinery.go.quote import go_quote


def is_ip(text: str) -> bool:
    """Says whether the text is an address of IPv4 or IPv6, without a zone."""
    return "%" not in text and not address_problem(text)


def address_problem(text: str) -> str:
    """Go's netip.ParseAddr's words."""
    kind = next((c for c in text if c in ".:%"), "")
    if not kind:
        return "unable to parse IP"
    if kind == "%":
        return "missing IPv6 address"
    if kind == ":":
        return _address6_problem(text)
    count = value = digits = 0
    for i, char in enumerate(text):
        if char.isascii() and char.isdigit():
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return "IPv4 field has value >255"
        elif char == ".":
            if i in (0, len(text) - 1) or text[i - 1] == ".":
                return f"IPv4 field must have at least one digit (at {go_quote(text[i:])})"
            if count == 3:
                return "IPv4 address too long"
            count, value, digits = count + 1, 0, 0
        else:
            return f"unexpected character (at {go_quote(text[i:])})"
    return "IPv4 address too short" if count < 3 else ""


def _address6_problem(text: str) -> str:  # noqa: C901 - the steps of Go's parseIPv6
    rest, zone_mark, zone = text.partition("%")
    if zone_mark and not zone:
        return "zone must be a non-empty string"
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return ""
    filled = 0
    while filled < 16:
        group = re.match(r"[0-9a-fA-F]*", rest)
        digits = group.group() if group else ""
        if len(digits) > 4:
            return f"each group must have 4 or fewer digits (at {go_quote(rest)})" if len(digits) > 4 else ""
        if not digits:
            return f"each colon-separated field must have at least one digit (at {go_quote(rest)})"
        if rest[len(digits) :].startswith("."):
            if ellipsis < 0 and filled != 12:
                return f"embedded IPv4 address must replace the final 2 fields of the address (at {go_quote(rest)})"
            if filled + 4 > 16:
                return f"too many hex fields to fit an embedded IPv4 at the end of the address (at {go_quote(rest)})"
            return address_problem(rest)
        filled, rest = filled + 2, rest[len(digits) :]
        if not rest:
            break
        if rest[0] != ":":
            return f"unexpected character, want colon (at {go_quote(rest)})"
        if len(rest) == 1:
            return f"colon must be followed by more characters (at {go_quote(rest)})"
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                return f"multiple :: in address (at {go_quote(rest)})"
            ellipsis, rest = filled, rest[1:]
            if not rest:
                break
    if rest:
        return f"trailing garbage after address (at {go_quote(rest)})"
    if filled < 16 and ellipsis < 0:
        return "address string too short"
    return "the :: must expand to at least one field of zeros" if filled == 16 and ellipsis >= 0 else ""
