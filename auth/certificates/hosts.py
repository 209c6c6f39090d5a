"""Hosts of names in certificates.

Upstream: crypto/x509/{verify,constraints}.go {domainToReverseLabels,parseRFC2821Mailbox}; net/url {URL.Host}.
"""

import re
from typing import Final
from urllib.parse import unquote

from fakeapiserver.apimachinery.go.url import URL

_LABEL: Final = re.compile(r"[\x21-\x7e]+")
_QUOTED: Final = re.compile(
    r'"((?:[\x01-\x09\x0b\x0c\x0e-!#-\[\]-\x7f]|\\[\x01-\x09\x0b\x0c\x0e-\x7f])*)"@(.*)', re.DOTALL
)
_UNQUOTED: Final = re.compile(r"((?:[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|\\[\s\S])+)@(.*)", re.DOTALL)


def labels_of(domain: str) -> list[str] | None:
    """Returns a domain's labels, the last one first, or None if it isn't a domain."""
    labels = domain.split(".")[::-1] if domain else []
    return labels if all(map(_LABEL.fullmatch, labels)) else None


def host_of(url: URL) -> str:
    """Returns `host:port` as written, without a user."""
    return unquote(url.authority.rpartition("@")[2])


def mailbox_of(email: str) -> tuple[str, str] | None:
    """Returns the local part and the domain of an address, or None if it isn't one."""
    match = _QUOTED.fullmatch(email) or _UNQUOTED.fullmatch(email)
    if match is None:
        return None
    local = re.sub(r"\\([\s\S])", r"\1", match[1])
    dotted = email[0] != '"' and (local.startswith(".") or local.endswith(".") or ".." in local)
    return None if dotted or labels_of(match[2]) is None else (local, match[2])
