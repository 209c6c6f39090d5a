"""Allocates the addresses, IP families and ports of services, and releases them.

Upstream: pkg/registry/core/service/storage/{alloc.go,storage.go}. Refusals are Invalid by themselves, before validation.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

import msgspec

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_internal_error, new_invalid
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.apimachinery.ip_addresses import canonical_ip
from fakeapiserver.apimachinery.meta import Object, metadata, name
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.effort import offloaded
from fakeapiserver.registry.core.service.ips import (
    IP_ADDRESSES,
    AllocationError,
    ClusterIPs,
    FullError,
    family_of,
    new_ip_address,
)
from fakeapiserver.registry.core.service.operation import Operation, Writer
from fakeapiserver.registry.core.service.ports import (
    NodePorts,
    PortOperation,
    held_ports,
    needs_health_check,
    node_ports,
)
from fakeapiserver.registry.core.service.validation import cluster_ip_errors

_SPEC: Final = Path("spec")
_IPS: Final = _SPEC.child("clusterIPs")
_POLICY: Final = _SPEC.child("ipFamilyPolicy")
_KIND: Final = GroupKind("", "Service")
_OTHER: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}
_PORT_TYPES: Final = ("NodePort", "LoadBalancer")
_IP_KINDS: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_SINGLE: Final = "SingleStack"
# Bytes of a port, about.
_PORT_SIZE: Final = 40
_ALLOCATED: Final = "provided IP is already allocated"


class ServiceAllocation:
    """The allocation of one server. `families` are those of --service-cluster-ip-range, in its order: the first is the default.
    `catch_up`: waits until everything that other servers have written is known here; None: there are no others."""

    def __init__(
        self,
        families: Sequence[str],
        objects: ObjectReader,
        writer: Writer,
        node_ports: NodePorts,
        chance: Chance = UNSEEDED,
        catch_up: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._families = tuple(families)
        self._ips = ClusterIPs(objects, chance)
        self._ports = node_ports
        self._catch_up = catch_up
        self._writer = writer

    def creating(self, obj: Object, dry_run: bool) -> AbstractAsyncContextManager[None]:
        """Surrounds the creation of a service and fills in its spec. Raises StatusError."""
        operation = self.operation(dry_run)
        plan = _Plan(partial(plan_new_addresses, operation, obj), partial(plan_new_ports, operation.ports, obj))
        return self._carried_out(operation, obj, plan)

    def updating(self, obj: Object, old: Object, dry_run: bool) -> AbstractAsyncContextManager[None]:
        """Surrounds an update, as `creating`."""
        operation = self.operation(dry_run)
        plan = _Plan(partial(plan_addresses, operation, obj, old), partial(plan_ports, operation.ports, obj, old))
        return self._carried_out(operation, obj, plan)

    async def release(self, obj: Object) -> None:
        """Releases the addresses and ports of a deleted service."""
        if ports := held_ports(obj):
            await self._ports.release(ports)
        await self._release(ip for ip in (obj.get("spec") or {}).get("clusterIPs") or () if ip != "None")

    def restore(self, services: Iterable[Object]) -> None:
        """Takes over the ports of all existing services; addresses are objects of their own."""
        self._ports.restore(services)

    def operation(self, dry_run: bool = False) -> Operation:
        return Operation(self._families, self._ips, PortOperation(self._ports, dry_run))

    @asynccontextmanager
    async def _carried_out(self, operation: Operation, obj: Object, plan: "_Plan") -> AsyncIterator[None]:
        created: list[str] = []
        spec = msgspec.json.encode(obj["spec"])
        try:
            while not await self._attempted(operation, obj, plan, created):
                obj["spec"] = msgspec.json.decode(spec)
            yield
        except BaseException:
            await self._undone(operation, created)
            raise
        finally:
            operation.keep()
        await operation.ports.commit()
        if not operation.dry_run:
            await self._release(operation.given_up)

    async def _attempted(self, operation: Operation, obj: Object, plan: "_Plan", created: list[str]) -> bool:
        """Allocates what the plan needs. Returns False if another server was faster: the plan must be made again."""
        if self._catch_up is not None:
            await self._catch_up()
        await operation.begin(with_ports=obj["spec"]["type"] in _PORT_TYPES)
        plan.addresses()
        await offloaded(plan.ports, _PORT_SIZE * len(obj["spec"].get("ports") or ()))
        if not await operation.ports.take():
            return False
        for ip in operation.taken:
            if not await self._make(operation, obj, ip):
                await self._undone(operation, created)
                return False
            created.append(ip)
        return True

    async def _undone(self, operation: Operation, created: list[str]) -> None:
        await operation.ports.revert()
        await self._release(created)
        created.clear()

    async def _make(self, operation: Operation, obj: Object, ip: str) -> bool:
        """Creates the IPAddress of an address, which admission may refuse. Returns False if it exists and another address will do."""
        meta, is_chosen = metadata(obj), ip in operation.chosen
        try:
            await self._writer.create(IP_ADDRESSES, new_ip_address(ip, meta["namespace"], meta.get("name", "")))
        except StatusError as error:
            exists = error.reason == "AlreadyExists"
            if exists and is_chosen and self._catch_up is not None:
                return False
            problem = _ALLOCATED if exists else error.message
            # A refusal shows the addresses as they were requested.
            requested = ["" if other in operation.chosen else other for other in obj["spec"]["clusterIPs"]]
            detail = f"failed to allocate IP{'' if is_chosen else f' {ip}'}: {problem}"
            raise _invalid(obj, [field.invalid(_IPS, requested, detail)]) from None
        return True

    async def _release(self, ips: Iterable[str]) -> None:
        for ip in ips:
            if self._ips.is_in_range(ip):
                with suppress(StatusError):  # the address is deleted already, or must stay
                    await self._writer.remove(IP_ADDRESSES, "", canonical_ip(ip))


class _Plan(NamedTuple):
    """The two steps of a plan, in their order. `ports` works on the objects of its own write alone."""

    addresses: Callable[[], None]
    ports: Callable[[], None]


def plan_new_addresses(operation: Operation, obj: Object) -> None:
    """Fills in a new service's families and addresses, in place. Raises StatusError."""
    spec = obj["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["type"] != "ExternalName":
        _init_families(operation.families, obj, None)
        _allocate_addresses(operation, obj)


def plan_new_ports(operation: PortOperation, obj: Object) -> None:
    """Fills in a new service's ports, in place. Raises StatusError."""
    spec = obj["spec"]
    if spec["type"] in _PORT_TYPES:
        _init_node_ports(operation, obj)
    if needs_health_check(spec):
        _allocate_health_check(operation, spec)


def plan_addresses(operation: Operation, obj: Object, old: Object) -> None:
    """Allocates as for a create; fields that the client left out keep their values."""
    spec, before = obj["spec"], old.get("spec") or {}
    _keep_allocated(spec, before)
    _match_singular(spec, before)
    if not _keeps_dual_stack(spec, before):
        if spec["type"] != "ExternalName":
            _init_families(operation.families, obj, before)
        _update_addresses(operation, obj, before)


def plan_ports(operation: PortOperation, obj: Object, old: Object) -> None:
    """Allocates as for a create, behind `plan_addresses`."""
    spec, before = obj["spec"], old.get("spec") or {}
    if before["type"] in _PORT_TYPES and spec["type"] in ("ExternalName", "ClusterIP"):
        operation.given_up += node_ports(before)
    if spec["type"] in _PORT_TYPES:
        _update_node_ports(operation, obj, before)
    if needs_health_check(spec) and not needs_health_check(before):
        _allocate_health_check(operation, spec)
    elif needs_health_check(before) and not needs_health_check(spec):
        operation.given_up.append(before.get("healthCheckNodePort", 0))


def _allocates_node_ports(spec: Object) -> bool:
    return spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts", True))
    )


def _invalid(obj: Object, errors: ErrorList) -> StatusError:
    return new_invalid(_KIND, name(obj), errors)


def _invalid_ips(obj: Object, detail: str) -> StatusError:
    return _invalid(obj, [field.invalid(_IPS, obj["spec"].get("clusterIPs"), detail)])


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


def _init_families(families: Sequence[str], obj: Object, before: Object | None) -> None:
    spec = obj["spec"]
    headless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        inherited = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = inherited or ("RequireDualStack" if headless else _SINGLE)
    if errors := cluster_ip_errors(spec, before or {}):
        raise _invalid(obj, errors)
    errors = _reduce(spec, before) if before is not None else []
    errors += _check_policy(spec) + _infer_families(families, spec)
    if errors:
        raise _invalid(obj, errors)
    if not headless and (errors := _check_cluster(families, spec)):
        raise _invalid(obj, errors)
    chosen = list(spec.get("ipFamilies") or families[:1])
    dual = spec["ipFamilyPolicy"] != _SINGLE and (headless or len(families) == 2)
    if dual and len(chosen) == 1:
        chosen.append(_OTHER[chosen[0]])
    spec["ipFamilies"] = chosen


def _reduce(spec: Object, before: Object) -> ErrorList:
    """Releases the second address and family if the policy is SingleStack; the errors if a list is shortened without that."""
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


def _infer_families(families: Sequence[str], spec: Object) -> ErrorList:
    errors: ErrorList = []
    addresses: list[str] = spec.get("clusterIPs") or []
    for i, ip in enumerate(addresses):
        if ip == "None":
            break
        if i < len(spec.get("ipFamilies") or ()):
            continue
        family = family_of(ip)
        if family in families:
            spec["ipFamilies"] = [*(spec.get("ipFamilies") or ()), family]
        else:
            detail = f"{family} is not configured on this cluster"
            errors.append(field.invalid(_SPEC.child("clusterIPs").index(i), addresses, detail))
    return errors


def _check_cluster(families: Sequence[str], spec: Object) -> ErrorList:
    errors: ErrorList = []
    if spec["ipFamilyPolicy"] == "RequireDualStack" and len(families) < 2:
        detail = "this cluster is not configured for dual-stack services"
        errors.append(field.invalid(_POLICY, spec["ipFamilyPolicy"], detail))
    for i, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in families:
            path = _SPEC.child("ipFamilies").index(i)
            errors.append(field.invalid(path, family, "not configured on this cluster"))
    return errors


# --------------------------------------------------------------------------- addresses


def _allocate_addresses(operation: Operation, obj: Object) -> None:
    """Allocates one address for each IP family."""
    spec = obj["spec"]
    addresses: list[str] = list(spec.get("clusterIPs") or ())
    if addresses[:1] == ["None"]:
        return
    spec["clusterIPs"] = addresses + [""] * (len(spec["ipFamilies"]) - len(addresses))
    for i, family in enumerate(spec["ipFamilies"]):
        _allocate_address(operation, obj, family, i)
    spec["clusterIP"] = spec["clusterIPs"][0]


def _update_addresses(operation: Operation, obj: Object, before: Object) -> None:
    """A first address is only given to a service that was an ExternalName; a second one comes and goes with its family."""
    spec, held = obj["spec"], before.get("clusterIPs") or []
    if before["type"] == "ExternalName":
        if spec["type"] != "ExternalName":
            _allocate_addresses(operation, obj)
        return
    if held[:1] == ["None"]:
        return
    if spec["type"] == "ExternalName":
        operation.given_up += held
        return
    now, then = len(spec["ipFamilies"]), len(before.get("ipFamilies") or ())
    if (then, now) == (1, 2):
        addresses = spec.get("clusterIPs") or []
        spec["clusterIPs"] = addresses + [""] * (2 - len(addresses))
        if spec["ipFamilies"][1] in operation.families:
            _allocate_address(operation, obj, spec["ipFamilies"][1], 1)
    elif (then, now) == (2, 1):
        operation.given_up += held[1:]


def _allocate_address(operation: Operation, obj: Object, family: str, i: int) -> None:
    """Allocates the address that the service requests at this position, or any."""
    addresses = obj["spec"]["clusterIPs"]
    requested = addresses[i]
    try:
        if requested:
            operation.allocate(family, requested)
        else:
            addresses[i] = operation.allocate_next(family)
    except FullError as error:
        message = f"failed to allocate a serviceIP for Service {go_quote(name(obj))}: {error}"
        raise new_internal_error(message) from None
    except AllocationError as error:
        raise _invalid_ips(obj, f"failed to allocate IP{' ' if requested else ''}{requested}: {error}") from None


# ------------------------------------------------------------------------------- ports


def _init_node_ports(operation: PortOperation, obj: Object) -> None:
    """Ports of one number with several protocols share a node port."""
    spec = obj["spec"]
    ports = spec.get("ports") or ()
    shared: dict[int, int] = {}
    requested = {port.get("port", 0): port["nodePort"] for port in reversed(ports) if port.get("nodePort")}
    for i, port in enumerate(ports):
        if not port.get("nodePort") and not _allocates_node_ports(spec):
            continue
        number, node_port = port.get("port", 0), port.get("nodePort", 0)
        if not shared.get(number):
            node_port = requested.get(number, 0)
            if node_port:
                _allocate_port(operation, obj, i, node_port)
            port["nodePort"] = shared[number] = node_port or _next_port(operation)
        elif not node_port:
            port["nodePort"] = shared[number]
        elif node_port != shared[number]:
            _allocate_port(operation, obj, i, node_port)


def _update_node_ports(operation: PortOperation, obj: Object, before: Object) -> None:
    spec, held = obj["spec"], dict.fromkeys(node_ports(before))
    taken: set[int] = set()
    seen: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.get("ports") or ()):
        node_port = port.get("nodePort", 0)
        if not node_port and not _allocates_node_ports(spec):
            continue
        if not node_port:
            port["nodePort"] = _next_port(operation)
        elif node_port not in held and node_port not in taken:
            _allocate_port(operation, obj, i, node_port)
            taken.add(node_port)
        key = (port.get("protocol", ""), port["nodePort"])
        if key in seen:
            raise new_bad_request(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
        seen.add(key)
    now = set(node_ports(spec))
    operation.given_up += [port for port in held if port not in now]


def _allocate_port(operation: PortOperation, obj: Object, i: int, number: int) -> None:
    try:
        operation.allocate(number)
    except AllocationError as error:
        path = _SPEC.child("ports").index(i).child("nodePort")
        raise _invalid(obj, [field.invalid(path, number, str(error))]) from None


def _next_port(operation: PortOperation) -> int:
    try:
        return operation.allocate_next()
    except AllocationError as error:
        raise new_internal_error(f"failed to allocate a nodePort: {error}") from None


def _allocate_health_check(operation: PortOperation, spec: Object) -> None:
    node_port = spec.get("healthCheckNodePort")
    try:
        if node_port:
            operation.allocate(node_port)
        else:
            spec["healthCheckNodePort"] = operation.allocate_next()
    except AllocationError as error:
        what = f"requested HealthCheck NodePort {node_port}" if node_port else "a HealthCheck NodePort 0"
        raise new_internal_error(f"failed to allocate {what}: {error}") from None
