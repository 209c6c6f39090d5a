"""Name constraints: the names that a CA permits.

Upstream: crypto/x509/verify.go {checkNameConstraints,matchDomainConstraint,matchURIConstraint,matchEmailConstraint}.
"""

from collections.abc import Sequence
from ipaddress import ip_address

from fakeapiserver.apimachinery.go.url import parse as parse_url
from fakeapiserver.auth.certificates.extensions import ADDRESS, DNS, EMAIL, URI, Extensions, Name
from fakeapiserver.auth.certificates.hosts import host_of, labels_of, mailbox_of


def permits(authority: Extensions, names: Sequence[Name]) -> bool:
    """Reports whether a CA's constraints permit all of these names."""
    try:
        return all(_permits(authority, tag, data) for tag, data in names)
    except ValueError:
        return False


def _permits(authority: Extensions, tag: int, data: bytes) -> bool:
    if tag != ADDRESS:
        _check(tag, data.decode())
    permitted = [limit for kind, limit in authority.permitted if kind == tag]
    if any(kind == tag and _matches(tag, data, limit, excluded=True) for kind, limit in authority.excluded):
        return False
    return not permitted or any(_matches(tag, data, limit, excluded=False) for limit in permitted)


def _check(tag: int, text: str) -> None:
    """ValueError for what can't be compared, even with no constraint of its kind."""
    if tag == URI:
        _uri_host(text)
    elif (mailbox_of(text) if tag == EMAIL else labels_of(text)) is None:
        raise ValueError(f"cannot parse {text}")


def _matches(tag: int, data: bytes, limit: bytes, *, excluded: bool) -> bool:
    if tag == ADDRESS:
        return _in_network(data, limit)
    text, constraint = data.decode(), limit.decode()
    if tag == DNS:
        return _in_domain(text, constraint, wildcard=excluded and text.startswith("*."))
    if tag == EMAIL:
        return _is_mailbox(text, constraint)
    return _in_domain(_uri_host(text), constraint)


def _in_network(data: bytes, limit: bytes) -> bool:
    size = len(limit) // 2
    network, mask = limit[:size], limit[size:]
    return len(data) == size and all((a ^ b) & m == 0 for a, b, m in zip(data, network, mask, strict=True))


def _is_mailbox(text: str, constraint: str) -> bool:
    local, domain = mailbox_of(text) or ("", "")
    if "@" not in constraint:
        return _in_domain(domain, constraint)
    known_local, _, known_domain = constraint.partition("@")
    return local == known_local and domain.lower() == known_domain.lower()


def _uri_host(text: str) -> str:
    """ValueError where there is no host, or an address."""
    host = host_of(parse_url(text))
    if not host:
        raise ValueError("URI with empty host cannot be matched against constraints")
    if ":" in host and not host.endswith("]"):
        host = host.rpartition(":")[0]
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return host
    raise ValueError("URI with IP cannot be matched against constraints")


def _in_domain(domain: str, constraint: str, *, wildcard: bool = False) -> bool:
    """`wildcard`: the domain is all with another first label, such as that of the constraint."""
    if not constraint:
        return True
    labels, limits = labels_of(domain.lower()), labels_of(constraint.removeprefix(".").lower())
    if labels is None or limits is None:
        raise ValueError(f"cannot parse {domain}")
    if len(labels) < len(limits) or (constraint.startswith(".") and len(labels) == len(limits)):
        return False
    if wildcard and len(labels) == len(limits):
        labels, limits = labels[:-1], limits[:-1]
    return labels[: len(limits)] == limits
