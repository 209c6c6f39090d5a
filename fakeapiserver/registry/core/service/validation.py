"""The rules for services.

Upstream: pkg/apis/core/validation/validation.go (ValidateService*).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, annotations
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import (
    choice_errors,
    cidr_errors,
    duplicate_errors,
    endpoint_ip_errors,
    ip_errors,
    name_errors,
    port_errors,
    port_or_name_errors,
    protocol_errors,
    selector_errors,
)
from fakeapiserver.registry.core.service.ips import family_of
from fakeapiserver.registry.core.service.ports import needs_health_check

_SPEC: Final = Path("spec")
_IPS: Final = _SPEC.child("clusterIPs")
_FAMILIES: Final = _SPEC.child("ipFamilies")
_PORTS: Final = _SPEC.child("ports")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES: Final = ("Proxy", "VIP")
_ANNOTATIONS: Final = Path("metadata.annotations")
_MODE: Final = "service.kubernetes.io/topology-mode"
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
TRAFFIC_POLICIES: Final = ("Cluster", "Local")
_BALANCER_ONLY: Final = "may only be used when `type` is 'LoadBalancer'"
_MAX_AFFINITY_SECONDS: Final = 86400
_ONCE: Final = "may not change once set"


def service_errors(obj: Object, old: Object | None = None, *, same_traffic: bool = True) -> ErrorList:
    """The errors in a service by itself. Addresses that `old` has are accepted. `same_traffic`: the gate
    PreferSameTrafficDistribution is on."""
    spec, before = obj["spec"], (old or {}).get("spec") or {}
    errors = _hint_errors(annotations(obj))
    if not spec.get("ports") and not _is_headless(spec) and spec.get("type") != "ExternalName":
        errors.append(field.required(_PORTS))
    errors += _type_errors(spec) + _each_port_errors(spec)
    errors += selector_errors(spec.get("selector"), _SPEC.child("selector")) + _affinity_errors(spec)
    errors += cluster_ip_errors(spec, before)
    for i, ip in enumerate(spec.get("externalIPs") or ()):
        path = _SPEC.child("externalIPs").index(i)
        errors += ip_errors(ip, path, before.get("externalIPs") or ()) or endpoint_ip_errors(ip, path)
    errors += choice_errors(spec.get("type", ""), _TYPES, _SPEC.child("type")) + _port_clashes(spec)
    errors += _range_errors(obj, old)
    return (
        errors + _balancer_errors(spec) + _traffic_errors(spec, _DISTRIBUTIONS if same_traffic else _DISTRIBUTIONS[:1])
    )


def service_update_errors(obj: Object, old: Object, *, same_traffic: bool = True) -> ErrorList:
    """The errors in an update: in what must not change, then in the service by itself."""
    spec, before = obj["spec"], old.get("spec") or {}
    errors: ErrorList = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        errors += _changed_ip_errors(spec, before) + _changed_family_errors(spec, before)
    both_balance = spec.get("type") == before.get("type") == "LoadBalancer"
    if both_balance and spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
        errors.append(field.invalid(_SPEC.child("loadBalancerClass"), spec.get("loadBalancerClass"), _ONCE))
    errors += _class_errors(spec)
    changed = spec.get("healthCheckNodePort") != before.get("healthCheckNodePort")
    if changed and needs_health_check(spec) and needs_health_check(before):
        errors.append(field.forbidden(_SPEC.child("healthCheckNodePort"), "field is immutable"))
    return errors + service_errors(obj, old, same_traffic=same_traffic)


def cluster_ip_errors(spec: Object, before: Object) -> ErrorList:
    """The errors in clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy together (ValidateServiceClusterIPsRelatedFields)."""
    if spec.get("type") == "ExternalName":
        return []
    addresses: list[str] = spec.get("clusterIPs") or []
    errors = _singular_errors(spec.get("clusterIP", ""), addresses)
    seen: set[str] = set()
    for i, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in ("IPv4", "IPv6"):
            errors.append(field.not_supported(_FAMILIES.index(i), family, ("IPv4", "IPv6")))
        errors += duplicate_errors(family, seen, _FAMILIES.index(i))
    if spec.get("ipFamilyPolicy", _POLICIES[0]) not in _POLICIES:
        errors.append(field.not_supported(_SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"], _POLICIES))
    wrong = _each_ip_errors(addresses, before.get("clusterIPs") or [])
    errors += wrong
    if len(addresses) > 2:
        errors.append(field.invalid(_IPS, addresses, "may only hold up to 2 values"))
    return errors if wrong else errors + _stack_errors(spec, addresses)


def _singular_errors(one: str, addresses: list[str]) -> ErrorList:
    if not one:
        detail = "must be empty when `clusterIP` is not specified"
        return [field.invalid(_IPS, addresses, detail)] if addresses else []
    if not addresses:
        return [field.required(_IPS)]
    return [] if addresses[0] == one else [field.invalid(_IPS, addresses, "first value must match `clusterIP`")]


def _each_ip_errors(addresses: list[str], known: list[str]) -> ErrorList:
    errors: ErrorList = []
    for i, ip in enumerate(addresses):
        if i == 0 and ip == "None":
            if len(addresses) > 1:
                errors.append(field.invalid(_IPS, addresses, "'None' must be the first and only value"))
        else:
            errors += ip_errors(ip, _IPS.index(i), known)
    return errors


def _stack_errors(spec: Object, addresses: list[str]) -> ErrorList:
    errors: ErrorList = []
    address_families = [family_of(ip) for ip in addresses]
    if len(address_families) > 1 and len(set(address_families)) == 1:
        errors.append(field.invalid(_IPS, addresses, "may specify no more than one IP for each IP family"))
    if not _is_headless(spec):
        for i, (family, expected_family) in enumerate(
            zip(address_families, spec.get("ipFamilies") or (), strict=False)
        ):
            if expected_family in ("IPv4", "IPv6") and family != expected_family:
                detail = f"expected an {expected_family} value as indicated by `ipFamilies[{i}]`"
                errors.append(field.invalid(_IPS.index(i), addresses[i], detail))
    return errors


def _is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == ["None"]


def _type_errors(spec: Object) -> ErrorList:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        return [field.invalid(_IPS.index(0), "None", f"may not be set to 'None' for {kind} services")]
    if kind != "ExternalName":
        return []
    detail = "may not be set for ExternalName services"
    given = [name for name in ("clusterIPs", "ipFamilies") if spec.get(name)]
    given += ["ipFamilyPolicy"] if "ipFamilyPolicy" in spec else []
    errors = [field.forbidden(_SPEC.child(name), detail) for name in given]
    path, name = _SPEC.child("externalName"), spec.get("externalName", "").removesuffix(".")
    return errors + (name_errors(name, names.is_dns1123_subdomain, path) if name else [field.required(path)])


def _each_port_errors(spec: Object) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    ports = spec.get("ports") or ()
    for i, port in enumerate(ports):
        path, name = _PORTS.index(i), port.get("name", "")
        if name:
            errors += name_errors(name, names.is_dns1123_label, path.child("name"))
            errors += duplicate_errors(name, seen, path.child("name"))
        elif len(ports) > 1:
            errors.append(field.required(path.child("name")))
        errors += port_errors(port.get("port", 0), path.child("port"))
        errors += protocol_errors(port.get("protocol", ""), path.child("protocol"))
        errors += port_or_name_errors(port.get("targetPort", 0), path.child("targetPort"))
        if "appProtocol" in port:
            errors += name_errors(port["appProtocol"], names.is_qualified_name, path.child("appProtocol"))
    return errors


def _affinity_errors(spec: Object) -> ErrorList:
    affinity = spec.get("sessionAffinity", "")
    errors = choice_errors(affinity, ("ClientIP", "None"), _SPEC.child("sessionAffinity"))
    if affinity == "None" and spec.get("sessionAffinityConfig") is not None:
        detail = "must not be set when session affinity is None"
        errors.append(field.forbidden(_SPEC.child("sessionAffinityConfig"), detail))
    if affinity == "ClientIP":
        seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
        if not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            path = _SPEC.child("sessionAffinityConfig", "clientIP", "timeoutSeconds")
            errors.append(field.invalid(path, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"))
    return errors


def _port_clashes(spec: Object) -> ErrorList:
    """The errors for ports with the same number, or the same node port, whose protocols are equal."""
    errors: ErrorList = []
    ports = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        taken = [i for i, port in enumerate(ports) if port.get("nodePort")]
        errors += [field.forbidden(_PORTS.index(i).child("nodePort"), detail) for i in taken]
    for key in ("nodePort", "port"):
        seen = set()
        for i, port in enumerate(ports):
            number, protocol = port.get(key, 0), port.get("protocol", "")
            if key == "nodePort" and not number:
                continue
            if (protocol, number) in seen:
                path = _PORTS.index(i)
                go_port: Any = number if key == "nodePort" else _shown_port(protocol, number)
                errors.append(field.duplicate(path.child(key) if key == "nodePort" else path, go_port))
            seen.add((protocol, number))
    return errors


def _shown_port(protocol: str, port: int) -> Object:
    """The key that upstream compares by, as Go prints it."""
    return internal_form({"protocol": protocol, "port": port}, "ServicePort")


def _hint_errors(annotations: Mapping[str, str]) -> ErrorList:
    mode, hints = annotations.get(_MODE), annotations.get(_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{_HINTS}] when both are specified"
    return [field.invalid(_ANNOTATIONS.key(_MODE), mode, detail)]


def _range_errors(obj: Object, old: Object | None) -> ErrorList:
    """The errors in the source ranges of a load balancer, in the field or in the older annotation."""
    spec, before = obj["spec"], (old or {}).get("spec") or {}
    text, known = annotations(obj).get(_RANGES), annotations(old or {}).get(_RANGES)
    ranges, balances = spec.get("loadBalancerSourceRanges"), spec.get("type") == "LoadBalancer"
    if not ranges and text is None:
        return []
    path = _SPEC.child("LoadBalancerSourceRanges") if ranges else _ANNOTATIONS.key(_RANGES)
    errors = [] if balances else [field.forbidden(path, _BALANCER_ONLY)]
    if ranges:
        accepted = [source_range.strip() for source_range in before.get("loadBalancerSourceRanges") or ()]
        for i, source_range in enumerate(ranges):
            errors += cidr_errors(source_range.strip(), path.index(i), accepted)
    elif text is not None and text.strip() and text != known:
        for source_range in text.strip().split(","):
            errors += cidr_errors(source_range.strip(), path)
    return errors


def _balancer_errors(spec: Object) -> ErrorList:
    errors: ErrorList = []
    if spec.get("type") != "LoadBalancer" and "allocateLoadBalancerNodePorts" in spec:
        errors.append(field.forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _BALANCER_ONLY))
    return errors + _class_errors(spec)


def _class_errors(spec: Object) -> ErrorList:
    path = _SPEC.child("loadBalancerClass")
    if "loadBalancerClass" not in spec:
        return []
    if spec.get("type") != "LoadBalancer":
        return [field.forbidden(path, _BALANCER_ONLY)]
    return name_errors(spec["loadBalancerClass"], names.is_qualified_name, path)


def _traffic_errors(spec: Object, distributions: Sequence[str]) -> ErrorList:
    errors: ErrorList = []
    path, policy = _SPEC.child("externalTrafficPolicy"), spec.get("externalTrafficPolicy", "")
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs")):
        errors += choice_errors(policy, TRAFFIC_POLICIES, path)
    elif policy:
        detail = "may only be set for externally-accessible services"
        errors.append(field.invalid(path, field.json_text(policy), detail))
    path, number = _SPEC.child("healthCheckNodePort"), spec.get("healthCheckNodePort", 0)
    if needs_health_check(spec):
        errors += port_errors(number, path) if number else [field.required(path)]
    elif number:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(field.invalid(path, number, detail))
    path, policy = _SPEC.child("internalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if policy is not None and policy not in TRAFFIC_POLICIES:
        errors.append(field.not_supported(path, policy, TRAFFIC_POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in distributions:
        errors.append(field.not_supported_text(_SPEC.child("trafficDistribution"), distribution, distributions))
    return errors


def _changed_ip_errors(spec: Object, before: Object) -> ErrorList:
    if _is_headless(spec) and _is_headless(before):
        return []
    now, then = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if len(now) == len(then):
        return [field.invalid(_IPS.index(i), now, _ONCE) for i, ip in enumerate(then) if ip != now[i]]
    if not now:
        return [field.invalid(_IPS.index(0), None, "primary clusterIP can not be unset")]
    errors = [field.invalid(_IPS.index(0), now, _ONCE)] if then and now[0] != then[0] else []
    if len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(field.invalid(_SPEC.child("ipFamilyPolicy"), spec.get("ipFamilyPolicy"), detail))
    return errors


def _changed_family_errors(spec: Object, before: Object) -> ErrorList:
    if _is_headless(spec) or _is_headless(before):
        return []
    now, then = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if len(now) == len(then):
        return [field.invalid(_FAMILIES.index(0), now, _ONCE) for i, family in enumerate(then) if family != now[i]]
    if now and then and now[0] != then[0]:
        return [field.invalid(_FAMILIES.index(0), spec.get("clusterIPs"), _ONCE)]
    return []


def service_status_errors(obj: Object, old: Object) -> ErrorList:
    """The errors in the addresses of a load balancer (ValidateLoadBalancerStatus)."""
    ingress, before = (
        ((owner.get("status") or {}).get("loadBalancer") or {}).get("ingress") or () for owner in (obj, old)
    )
    path = Path("status").child("loadBalancer", "ingress")
    if not ingress:
        return []
    if obj["spec"].get("type") != "LoadBalancer":
        return [field.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = [entry["ip"] for entry in before if entry.get("ip")]
    return [error for i, entry in enumerate(ingress) for error in _ingress_errors(entry, known, path.index(i))]


def _ingress_errors(entry: Object, known: list[str], path: Path) -> ErrorList:
    ip, mode, host = entry.get("ip", ""), entry.get("ipMode"), entry.get("hostname", "")
    errors = ip_errors(ip, path.child("ip"), known) if ip else []
    at = path.child("ipMode")
    if mode is None:
        errors += [field.required(at, "must be specified when `ip` is set")] if ip else []
    elif not ip:
        errors.append(field.forbidden(at, "may not be specified when `ip` is not set"))
    elif mode not in _IP_MODES:
        errors.append(field.not_supported(at, mode, _IP_MODES))
    if not host:
        return errors
    errors += name_errors(host, names.is_dns1123_subdomain, path.child("hostname"))
    if not ip_errors(host, path):
        errors.append(field.invalid(path.child("hostname"), host, "must be a DNS name, not an IP address"))
    return errors
