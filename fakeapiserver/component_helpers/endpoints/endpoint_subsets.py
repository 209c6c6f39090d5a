"""The one layout of an Endpoints' subsets (upstream: pkg/api/v1/endpoints/util.go)."""

from collections.abc import Iterable, Mapping, Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.workloads.deep_hash import fnv128a, spew

# name, port, protocol, appProtocol
_Port = tuple[str, int, str, str | None]
# ip, uid of the target
_AddressKey = tuple[str, str]
_NO_PORTS: _Port = ("", -1, "", None)


def repack_subsets(subsets: Iterable[Object]) -> list[Object]:
    """Subsets with the same endpoints: ports that are served by the same addresses are in one subset, each address is in it once,
    and everything has its place. An address that is both ready and not is not."""
    addresses: dict[_AddressKey, Object] = {}
    by_port: dict[_Port, dict[_AddressKey, bool]] = {}
    for subset in subsets:
        for port in [_port(subset_row) for subset_row in subset.get("ports") or ()] or [_NO_PORTS]:
            readiness = by_port.setdefault(port, {})
            for members, ready in (("addresses", True), ("notReadyAddresses", False)):
                for address in subset.get(members) or ():
                    key = _address_key(address)
                    addresses.setdefault(key, address)
                    readiness[key] = readiness.get(key, True) and ready
    by_addresses: dict[frozenset[tuple[_AddressKey, bool]], list[_Port]] = {}
    for port, readiness in by_port.items():
        ports = by_addresses.setdefault(frozenset(readiness.items()), [])
        if port is not _NO_PORTS:
            ports.append(port)
    subset_row = [_subset(members, ports, addresses) for members, ports in by_addresses.items()]
    return sorted(subset_row, key=lambda subset: fnv128a(_subset_text(subset))) if len(subset_row) > 1 else subset_row


def _subset(
    members: Iterable[tuple[_AddressKey, bool]], ports: Sequence[_Port], addresses: Mapping[_AddressKey, Object]
) -> Object:
    ordered = sorted(members)
    subset: Object = {}
    if ready := [addresses[key] for key, is_ready in ordered if is_ready]:
        subset["addresses"] = ready
    if not_ready := [addresses[key] for key, is_ready in ordered if not is_ready]:
        subset["notReadyAddresses"] = not_ready
    if ports:
        hashed = sorted(ports, key=lambda port: fnv128a(f"(v1.EndpointPort){_port_text(port)}"))
        subset["ports"] = [_endpoint_port(port) for port in hashed]
    return subset


def _port(port: Object) -> _Port:
    return port.get("name", ""), port["port"], port.get("protocol", ""), port.get("appProtocol")


def _endpoint_port(port: _Port) -> Object:
    name, number, protocol, app_protocol = port
    endpoint_port: Object = {"port": number}
    for member, value in (("name", name), ("protocol", protocol), ("appProtocol", app_protocol)):
        if value or (value is not None and member == "appProtocol"):
            endpoint_port[member] = value
    return endpoint_port


def _address_key(address: Object) -> _AddressKey:
    return address["ip"], (address.get("targetRef") or {}).get("uid", "")


def _port_text(port: _Port) -> str:
    name, number, protocol, app_protocol = port
    members = (
        spew("Name", "string", name),
        spew("Port", "int32", number),
        spew("Protocol", "v1.Protocol", protocol),
        spew("AppProtocol", "*string", app_protocol),
    )
    return f"{{{' '.join(members)}}}"


def _subset_text(subset: Object) -> str:
    members = (
        _list_text("Addresses", "v1.EndpointAddress", [_address_text(row) for row in subset.get("addresses", ())]),
        _list_text(
            "NotReadyAddresses",
            "v1.EndpointAddress",
            [_address_text(row) for row in subset.get("notReadyAddresses", ())],
        ),
        _list_text("Ports", "v1.EndpointPort", [_port_text(_port(row)) for row in subset.get("ports", ())]),
    )
    return f"(v1.EndpointSubset){{{' '.join(members)}}}"


def _list_text(name: str, go_type: str, items: Sequence[str]) -> str:
    return spew(name, f"[]{go_type}", f"[{' '.join(items)}]" if items else None)


def _address_text(address: Object) -> str:
    target = address.get("targetRef")
    referred = None
    if target is not None:
        names = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        shown = [
            spew(_go_name(name), "types.UID" if name == "uid" else "string", target.get(name, "")) for name in names
        ]
        referred = f"{{{' '.join(shown)}}}"
    members = (
        spew("IP", "string", address["ip"]),
        spew("Hostname", "string", address.get("hostname", "")),
        spew("NodeName", "*string", address.get("nodeName")),
        spew("TargetRef", "*v1.ObjectReference", referred),
    )
    return f"{{{' '.join(members)}}}"


def _go_name(member: str) -> str:
    return (
        "UID"
        if member == "uid"
        else member.replace("api", "API")
        if member == "apiVersion"
        else member[0].upper() + member[1:]
    )
