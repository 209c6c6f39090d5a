"""Network policies.

Upstream: pkg/registry/networking/networkpolicy/strategy.go, pkg/apis/networking/{v1/defaults.go,validation/validation.go}.
"""

import re
from collections.abc import Collection, Iterator
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.ip_addresses import unzoned_network
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import cidr_errors, is_valid_port_name, port_errors
from fakeapiserver.registry.core.service.ip_warnings import cidr_warnings
from fakeapiserver.registry.generic.label_selector import format_label_selector, label_selector_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

# Leading zeros, which are ignored.
_ZEROS: Final = re.compile(r"(?<!\d)0+(?=\d)")
_SPEC: Final = Path("spec")
_TYPES: Final = ("Ingress", "Egress")
_DIRECTIONS: Final = (("ingress", "from"), ("egress", "to"))
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


class NetworkPolicyStrategy(Strategy, kw_only=True):
    generation_counts_empties: tuple[str, ...] = ("spec",)

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        for _, rule, _ in _rules(spec):
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: Object) -> ErrorList:
        return self._spec_errors(obj["spec"], ())

    def warnings_on_create(self, obj: Object) -> list[str]:
        return [warning for subnet, path in _subnets(obj["spec"]) for warning in cidr_warnings(subnet, path)]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self._spec_errors(obj["spec"], {subnet for subnet, _ in _subnets(old["spec"]) if subnet})

    def _spec_errors(self, spec: Object, known: Collection[str]) -> ErrorList:
        """The errors in a spec. `known`: subnets that were accepted before."""
        errors = label_selector_errors(spec.get("podSelector"), _SPEC.child("podSelector"))
        for path, rule, peers in _rules(spec):
            for i, port in enumerate(rule.get("ports") or ()):
                errors += _port_errors(port, path.child("ports").index(i), shows_end=self.features.at_least("v1.37"))
            for i, peer in enumerate(rule.get(peers) or ()):
                errors += _peer_errors(peer, path.child(peers).index(i), known)
        return errors + _type_errors(spec["policyTypes"], _SPEC.child("policyTypes"))

    def table_row(self, obj: Object, now: float) -> Cells:
        selector = (obj.get("spec") or {}).get("podSelector") or {}
        return [metadata(obj).get("name", ""), format_label_selector(selector), age(obj, now)]


def _rules(spec: Object) -> Iterator[tuple[Path, Object, str]]:
    """Each rule with its path and the name of its peers."""
    for direction, peers in _DIRECTIONS:
        for i, rule in enumerate(spec.get(direction) or ()):
            yield _SPEC.child(direction).index(i), rule, peers


def _subnets(spec: Object) -> Iterator[tuple[str, Path]]:
    """Every subnet that the rules name."""
    for path, rule, peers in _rules(spec):
        for i, peer in enumerate(rule.get(peers) or ()):
            block, at = peer.get("ipBlock") or {}, path.child(peers).index(i).child("ipBlock")
            yield block.get("cidr", ""), at.child("cidr")
            for j, subnet in enumerate(block.get("except") or ()):
                yield subnet, at.child("except").index(j)


def _type_errors(types: list[str], path: Path) -> ErrorList:
    if len(types) > len(_TYPES):
        return [field.invalid(path, types, "may not specify more than two policyTypes")]
    return [field.not_supported(path.index(i), value, _TYPES) for i, value in enumerate(types) if value not in _TYPES]


def _port_errors(item: Object, path: Path, *, shows_end: bool) -> ErrorList:
    """The errors in a port. `shows_end`: the end of a wrong range is shown as the invalid value, not its beginning."""
    errors: ErrorList = []
    if item["protocol"] not in _PROTOCOLS:
        errors.append(field.not_supported(path.child("protocol"), item["protocol"], _PROTOCOLS))
    port, end, at = item.get("port"), item.get("endPort"), path.child("endPort")
    if isinstance(port, int):
        errors += port_errors(port, path.child("port"))
        if end is not None:
            if end < port:
                errors.append(field.invalid(at, end if shows_end else port, "must be greater than or equal to `port`"))
            errors += port_errors(end, at)
        return errors
    if end is not None:
        reason = "`port` is not specified" if port is None else "`port` is non-numeric"
        errors.append(field.invalid(at, end, f"may not be specified when {reason}"))
    if port is not None:
        errors += [field.invalid(path.child("port"), port, problem) for problem in is_valid_port_name(port)]
    return errors


def _peer_errors(peer: Object, path: Path, known: Collection[str]) -> ErrorList:
    errors = label_selector_errors(peer.get("podSelector"), path.child("podSelector"))
    errors += label_selector_errors(peer.get("namespaceSelector"), path.child("namespaceSelector"))
    if "ipBlock" in peer:
        errors += _block_errors(peer["ipBlock"], path.child("ipBlock"), known)
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if name in peer]
    if not given:
        errors.append(field.required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        errors.append(field.forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _block_errors(block: Object, path: Path, known: Collection[str]) -> ErrorList:
    if not block.get("cidr"):
        return [field.required(path.child("cidr"), "")]
    errors = cidr_errors(block["cidr"], path.child("cidr"), known)
    network = _network(block["cidr"])
    for i, text in enumerate(block.get("except") or () if network else ()):
        at, inner = path.child("except").index(i), _network(text)
        errors += cidr_errors(text, at, known)
        if network and inner and not (network.version == inner.version and _holds(network, inner)):
            errors.append(field.invalid(at, text, "must be a strict subset of `cidr`"))
    return errors


def _network(text: str) -> IPv4Network | IPv6Network | None:
    """The text as a network; None if it isn't one, or has no prefix length."""
    try:
        return unzoned_network(_ZEROS.sub("", text) if "." in text else text) if "/" in text else None
    except ValueError:
        return None


def _holds(network: IPv4Network | IPv6Network, inner: IPv4Network | IPv6Network) -> bool:
    return inner.network_address in network and network.prefixlen < inner.prefixlen
