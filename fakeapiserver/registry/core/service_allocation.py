"""Which addresses, address families and ports a service gets.

Upstream: pkg/registry/core/service/storage/{alloc.go,storage.go}. Refusals are Invalid by themselves, before validation.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import StatusError, new_internal_error, new_invalid
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.apimachinery.meta import Object, name
from fakeapiserver.registry.core.service_allocators import Allocator, Allocators, FullError, family_of, node_ports
from fakeapiserver.registry.core.service_validation import cluster_ip_errors

_SPEC: Final = Path("spec")
_POLICY: Final = _SPEC.child("ipFamilyPolicy")
_KIND: Final = GroupKind("", "Service")
_OTHER: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}
_IP_KINDS: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_SINGLE: Final = "SingleStack"


def allocate_for_create(allocators: Allocators, obj: Object) -> None:
    """Fills in a new service's families, addresses and ports, in place."""
    spec = obj["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["type"] != "ExternalName":
        _init_families(allocators, obj, None)
        _allocate_addresses(allocators, obj, {})
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _init_node_ports(allocators, obj)
    if needs_health_check(spec):
        _allocate_health_check(allocators, spec)


def allocate_for_update(allocators: Allocators, obj: Object, old: Object) -> None:
    """As for create; what the client left out stays what it is."""
    spec, before = obj["spec"], old.get("spec") or {}
    _keep_allocated(spec, before)
    _match_singular(spec, before)
    if spec["type"] != "ExternalName" and not _keeps_dual_stack(spec, before):
        _init_families(allocators, obj, before)
        if before["type"] == "ExternalName" or (before.get("clusterIPs") or [""])[0] != "None":
            _allocate_addresses(allocators, obj, before)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _update_node_ports(allocators, obj, before)
    if needs_health_check(spec) and not needs_health_check(before):
        _allocate_health_check(allocators, spec)


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _allocates_node_ports(spec: Object) -> bool:
    return spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts", True))
    )


def _invalid(obj: Object, errors: ErrorList) -> StatusError:
    return new_invalid(_KIND, name(obj), errors)


# -------------------------------------------------------------- what an update leaves out


def _keep_allocated(spec: Object, before: Object) -> None:
    """Upstream: patchAllocatedValues."""
    if before["type"] != "ExternalName" and spec["type"] != "ExternalName":
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if _allocates_node_ports(before) and _allocates_node_ports(spec):
        used = set(node_ports(before)) & set(node_ports(spec))
        known = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            number = known.get(port.get("name", ""), 0)
            if not port.get("nodePort") and number and number not in used:
                port["nodePort"] = number
    if needs_health_check(before) and needs_health_check(spec) and before.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _match_singular(spec: Object, before: Object) -> None:
    """clusterIP is the first of clusterIPs; clients that know only one of them must not break the other."""
    one, several = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    old_one, old_several = before.get("clusterIP", ""), before.get("clusterIPs") or []
    if old_several and not several and one == old_one:
        spec["clusterIPs"] = list(old_several)
    elif one != old_one and several == old_several:
        if one:
            spec["clusterIPs"] = [one]
        elif old_one:
            spec.pop("clusterIPs", None)


def _keeps_dual_stack(spec: Object, before: Object) -> bool:
    """A PreferDualStack service isn't changed by what the cluster has become since."""
    return (
        spec.get("ipFamilyPolicy") == "PreferDualStack"
        and before.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and spec["type"] == before["type"]
        and spec["type"] in _IP_KINDS
        and (spec.get("clusterIPs") or []) == (before.get("clusterIPs") or [])
        and (spec.get("ipFamilies") or []) == (before.get("ipFamilies") or [])
    )


# ---------------------------------------------------------------------------- families


def _init_families(allocators: Allocators, obj: Object, before: Object | None) -> None:
    spec = obj["spec"]
    headless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        inherited = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = inherited or ("RequireDualStack" if headless else _SINGLE)
    if errors := cluster_ip_errors(spec, before or {}):
        raise _invalid(obj, errors)
    errors = _reduce(spec, before) if before is not None else []
    errors += _check_policy(spec) + _infer_families(allocators, spec)
    if errors:
        raise _invalid(obj, errors)
    if not headless and (errors := _check_cluster(allocators, spec)):
        raise _invalid(obj, errors)
    families = list(spec.get("ipFamilies") or [allocators.default_family])
    dual = spec["ipFamilyPolicy"] != _SINGLE and (headless or len(allocators.addresses) == 2)
    if dual and len(families) == 1:
        families.append(_OTHER[families[0]])
    spec["ipFamilies"] = families


def _reduce(spec: Object, before: Object) -> ErrorList:
    """Going back to one family is asked for by the policy, not by leaving out."""
    errors: ErrorList = []
    for key, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        now, then = spec.get(key) or [], before.get(key) or []
        if spec["ipFamilyPolicy"] == _SINGLE:
            if now == then and len(now) > 1:
                spec[key] = now[:1]
        elif now and len(now) < len(then):
            detail = f"must be 'SingleStack' to release the secondary {what}"
            errors.append(field.invalid(_POLICY, spec["ipFamilyPolicy"], detail))
    return errors


def _check_policy(spec: Object) -> ErrorList:
    errors: ErrorList = []
    if spec["ipFamilyPolicy"] == _SINGLE:
        for key, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if len(spec.get(key) or ()) == 2:
                detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                errors.append(field.invalid(_POLICY, _SINGLE, detail))
    return errors


def _infer_families(allocators: Allocators, spec: Object) -> ErrorList:
    errors: ErrorList = []
    addresses: list[str] = spec.get("clusterIPs") or []
    for i, ip in enumerate(addresses):
        if ip == "None":
            break
        if i < len(spec.get("ipFamilies") or ()):
            continue
        family = family_of(ip)
        if family in allocators.addresses:
            spec["ipFamilies"] = [*(spec.get("ipFamilies") or ()), family]
        else:
            detail = f"{family} is not configured on this cluster"
            errors.append(field.invalid(_SPEC.child("clusterIPs").index(i), addresses, detail))
    return errors


def _check_cluster(allocators: Allocators, spec: Object) -> ErrorList:
    errors: ErrorList = []
    if spec["ipFamilyPolicy"] == "RequireDualStack" and len(allocators.addresses) < 2:
        detail = "this cluster is not configured for dual-stack services"
        errors.append(field.invalid(_POLICY, spec["ipFamilyPolicy"], detail))
    for i, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in allocators.addresses:
            path = _SPEC.child("ipFamilies").index(i)
            errors.append(field.invalid(path, family, "not configured on this cluster"))
    return errors


# --------------------------------------------------------------------------- addresses


def _allocate_addresses(allocators: Allocators, obj: Object, before: Object) -> None:
    """One address a family; those of `before` are held already."""
    spec = obj["spec"]
    addresses: list[str] = list(spec.get("clusterIPs") or ())
    if addresses[:1] == ["None"]:
        return
    for i, family in enumerate(spec["ipFamilies"]):
        if i < len(addresses) and addresses[i]:
            if addresses[i] not in (before.get("clusterIPs") or ()):
                _check_address(allocators, obj, family, addresses[i])
        else:
            addresses[i:] = [_next_address(allocators, obj, family)]
    spec["clusterIPs"] = addresses
    spec["clusterIP"] = addresses[0]


def _check_address(allocators: Allocators, obj: Object, family: str, ip: str) -> None:
    try:
        problem = allocators.addresses[family].check(int(ip_address(ip)))
    except ValueError:
        return  # validation tells
    if problem:
        detail = f"failed to allocate IP {ip}: {problem}"
        raise _invalid(obj, [field.invalid(_SPEC.child("clusterIPs"), obj["spec"]["clusterIPs"], detail)])


def _next_address(allocators: Allocators, obj: Object, family: str) -> str:
    try:
        number = allocators.addresses[family].pick()
    except FullError as error:
        message = f"failed to allocate a serviceIP for Service {field.go_quote(name(obj))}: {error}"
        raise new_internal_error(message) from None
    return str(IPv4Address(number) if family == "IPv4" else IPv6Address(number))


# ------------------------------------------------------------------------------- ports


def _init_node_ports(allocators: Allocators, obj: Object) -> None:
    """Ports of one number with several protocols share a node port."""
    spec = obj["spec"]
    ports = spec.get("ports") or ()
    shared: dict[int, int] = {}
    taken: set[int] = set()
    for i, port in enumerate(ports):
        if not port.get("nodePort") and not _allocates_node_ports(spec):
            continue
        number, wanted = port.get("port", 0), port.get("nodePort", 0)
        if not shared.get(number):
            wanted = next((p["nodePort"] for p in ports if p.get("port", 0) == number and p.get("nodePort")), 0)
            if wanted:
                _check_port(allocators.ports, obj, i, wanted, taken)
            port["nodePort"] = shared[number] = wanted or _next_port(allocators.ports)
        elif not wanted:
            port["nodePort"] = shared[number]
        elif wanted != shared[number]:
            _check_port(allocators.ports, obj, i, wanted, taken)


def _update_node_ports(allocators: Allocators, obj: Object, before: Object) -> None:
    spec, held = obj["spec"], node_ports(before)
    for i, port in enumerate(spec.get("ports") or ()):
        wanted = port.get("nodePort", 0)
        if wanted:
            if wanted not in held:
                _check_port(allocators.ports, obj, i, wanted, set())
        elif _allocates_node_ports(spec):
            port["nodePort"] = _next_port(allocators.ports)


def _check_port(allocator: Allocator, obj: Object, i: int, number: int, taken: set[int]) -> None:
    problem = allocator.check(number) or (allocator.taken if number in taken else "")
    taken.add(number)
    if problem:
        path = _SPEC.child("ports").index(i).child("nodePort")
        raise _invalid(obj, [field.invalid(path, number, problem)])


def _next_port(allocator: Allocator) -> int:
    try:
        return allocator.pick()
    except FullError as error:
        raise new_internal_error(f"failed to allocate a nodePort: {error}") from None


def _allocate_health_check(allocators: Allocators, spec: Object) -> None:
    wanted = spec.get("healthCheckNodePort")
    if not wanted:
        spec["healthCheckNodePort"] = _next_port(allocators.ports)
    elif problem := allocators.ports.check(wanted):
        raise new_internal_error(f"failed to allocate requested HealthCheck NodePort {wanted}: {problem}")
