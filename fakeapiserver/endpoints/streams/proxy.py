"""Proxies to a pod's port, a service's endpoints, a node's port: where they lead. Simulated pods are reached through their scripts.

Upstream: pkg/registry/core/{pod/strategy.go,service/storage/storage.go,node/strategy.go} (ResourceLocation), pkg/registry/core/*/rest/
proxy.go, k8s.io/apimachinery/pkg/util/net/port_split.go.
"""

import asyncio
import posixpath
import random
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import new_bad_request, new_not_found, new_service_unavailable
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import RangeError, parse_int, parse_uint
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.streams.connect import found_node, found_object
from fakeapiserver.endpoints.streams.connect_options import admitted
from fakeapiserver.transport.resolver import lookup_failure
from fakeapiserver.transport.round_trip import Dial

_NODES: Final = GroupResource("", "nodes")
_PODS: Final = GroupResource("", "pods")
_SERVICES: Final = GroupResource("", "services")
_ENDPOINTS: Final = GroupResource("", "endpoints")
_SLICES: Final = GroupResource("discovery.k8s.io", "endpointslices")
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_SCHEMES: Final = ("", "http", "https")
_NOT_ALLOWED: Final = "address not allowed"


class Location(Struct, frozen=True):
    """The target of a proxied request.

    `path` is unescaped and may be empty; `port` None: the scheme's; `dial`: opens the connection; None: by TCP.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    dial: Dial | None = None

    @property
    def authority(self) -> str:
        """`10.0.0.3:8080`, `[fd00::3]`"""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


class _Asked(Struct, frozen=True):
    """`scheme:name:port`, `name:port` or `name`; what isn't said is empty."""

    scheme: str
    name: str
    port: str


async def pod_proxy(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Without a port, to the first that a container names."""
    path = await _path(request, scope, scopes)
    asked = _asked("pod", request.info.name)
    pod = await found_object(request, scope, asked.name)
    address = next(iter(_pod_addresses(pod)), "")
    ports = (port["containerPort"] for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    if not _is_global_unicast(address):
        raise new_bad_request(_NOT_ALLOWED)
    port = _port(asked.port) if asked.port else next(ports, None)
    location = Location(asked.scheme or "http", address, port, path)
    return await scopes.proxy.serve(request, _through_script(location, pod, scopes))


async def service_proxy(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Proxies to one of a service's endpoints that are pods; a port is given by its name, or its number in the
    service.
    """
    path = await _path(request, scope, scopes)
    info, asked = request.info, _asked("service", request.info.name)
    port = asked.port
    if (number := _number(port)) is not None:
        service = await found_object(request, scope, asked.name)
        named = [row.get("name", "") for row in service["spec"].get("ports") or () if row["port"] == number]
        if not named:
            raise new_service_unavailable(f"no service port {number} found for service {go_quote(asked.name)}")
        port = named[0]
    if scopes.table.scheme.features.at_least("v1.37"):
        candidates = await _slice_candidates(info.namespace, asked.name, port, scopes)
    else:
        candidates = await _subset_candidates(info.namespace, asked.name, port, scopes)
    for address, number in candidates:
        if (pod := await _pod_at(address, info.namespace, scopes)) is not None:
            location = Location(asked.scheme or "http", address["ip"], number, path)
            return await scopes.proxy.serve(request, _through_script(location, pod, scopes))
    # Until 1.36 upstream names the scheme and the port as well.
    shown = asked.name if scopes.table.scheme.features.at_least("v1.37") else info.name
    raise new_service_unavailable(f"no endpoints available for service {go_quote(shown)}")


async def _subset_candidates(
    namespace: str, service: str, port: str, scopes: RequestScopes
) -> Iterator[tuple[Object, int]]:
    """The addresses of a service's Endpoints, as until 1.36. Raises StatusError 404 and 503."""
    endpoints = await _stored(_ENDPOINTS, namespace, service, scopes)
    if endpoints is None:
        raise new_not_found(_SERVICES, service)
    subsets = endpoints.get("subsets") or []
    if not subsets:
        raise new_service_unavailable(f"no endpoints available for service {go_quote(service)}")
    return _candidates(subsets, port)


async def _slice_candidates(
    namespace: str, service: str, port: str, scopes: RequestScopes
) -> Iterator[tuple[Object, int]]:
    """The addresses of a service's EndpointSlices, in the form of those of Endpoints (upstream: util/proxy.RandomEndpoint)."""
    store = scopes.store_for(_SLICES)
    assert store is not None
    listed = await store.storage.list(store.collection(namespace))
    slices = [store.decode(item.value) for item in listed.items if item.index.labels.get(_SERVICE_LABEL) == service]
    subsets = [
        {
            "ports": [row for row in obj.get("ports") or () if row.get("port") is not None and "name" in row],
            "addresses": [
                {"ip": endpoint["addresses"][0], "targetRef": endpoint.get("targetRef")}
                for endpoint in obj.get("endpoints") or ()
                if (endpoint.get("conditions") or {}).get("ready") is not False
            ],
        }
        for obj in slices
    ]
    return _candidates(subsets, port)


async def node_proxy(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """To its kubelet, or to another port of it."""
    path = await _path(request, scope, scopes)
    asked = _asked("node", request.info.name)
    node = await found_node(asked.name, scopes, _NODES)
    scopes.kubelet_client.check_addresses(node)
    host, own_port = scopes.kubelet_client.address(node)
    own = asked.port in ("", str(own_port))
    if (nodes := scopes.services.simulated_nodes()) is not None:
        try:
            simulated = nodes.kubelets.runtime(asked.name) is not None
        except ConnectionError as error:
            raise new_service_unavailable(f"error trying to reach service: {error}") from None
        if simulated and own and path:
            return await nodes.server.handle(replace(request, path=path), asked.name)
    await _check_proxyable(host)
    if own:
        return await scopes.kubelet_client.proxy(request, Location("https", host, own_port, path))
    return await scopes.proxy.serve(request, Location(asked.scheme or "http", host, _port(asked.port), path))


async def _path(request: Request, scope: RequestScope, scopes: RequestScopes) -> str:
    """Returns the path after `proxy` as admission leaves it, cleaned as path.Join does; a slash at its end stays."""
    options = await admitted(request, scope, scopes)
    path = str(options.get("path") or "")
    clean = posixpath.normpath(path).replace("//", "/") if path else ""
    return f"{clean}/" if path.endswith("/") and not clean.endswith("/") else clean


def _asked(what: str, text: str) -> _Asked:
    """StatusError 400. Upstream: SplitSchemeNamePort."""
    parts = text.split(":")
    scheme, name, port = ("", *parts, "")[:3] if len(parts) < 3 else parts[:3]
    if len(parts) > 3 or not name or scheme not in _SCHEMES:
        raise new_bad_request(f"invalid {what} request {go_quote(text)}")
    return _Asked(scheme, name, port)


def _number(port: str) -> int | None:
    """Returns the number of a service's port, or None for the name of one."""
    try:
        return parse_int(port)
    except ValueError:
        return None


def _port(text: str) -> int:
    """Raises StatusError: 503 for a number beyond all ports, 400 for what isn't a number, where upstream panics."""
    try:
        return parse_uint(text, 32)
    except RangeError:
        raise new_service_unavailable(
            f"error trying to reach service: dial tcp: address {text}: invalid port"
        ) from None
    except ValueError:
        raise new_bad_request(f"invalid port {go_quote(text)}") from None


async def _stored(resource: GroupResource, namespace: str, name: str, scopes: RequestScopes) -> Object | None:
    store = scopes.store_for(resource)
    assert store is not None
    item = await store.storage.get(store.key(namespace, name))
    return store.decode(item.value) if item is not None else None


def _candidates(subsets: list[Object], port: str) -> Iterator[tuple[Object, int]]:
    """Addresses and the numbers of the port of this name, from anywhere on and around."""
    for subset in _around(subsets):
        addresses = subset.get("addresses") or []
        for row in subset.get("ports") or () if addresses else ():
            if row.get("name", "") == port:
                yield from ((address, row["port"]) for address in _around(addresses))


def _around(rows: list[Object]) -> list[Object]:
    begin = random.randrange(len(rows)) if len(rows) > 1 else 0
    return rows[begin:] + rows[:begin]


async def _pod_at(address: Object, namespace: str, scopes: RequestScopes) -> Object | None:
    """Returns the pod that an endpoint names, if it exists and has the endpoint's address:

    no request is proxied anywhere else.
    """
    target = address.get("targetRef") or {}
    if target.get("namespace", "") != namespace or not target.get("name"):
        return None
    pod = await _stored(_PODS, namespace, target["name"], scopes)
    return pod if pod is not None and address["ip"] in _pod_addresses(pod) else None


def _pod_addresses(pod: Object) -> list[str]:
    return [row["ip"] for row in (pod.get("status") or {}).get("podIPs") or ()]


def _through_script(location: Location, pod: Object, scopes: RequestScopes) -> Location:
    """Returns the location unchanged, or for a simulated pod the server of its script."""
    node = pod["spec"].get("nodeName")
    if not node or scopes.kubelets is None:
        return location
    try:
        runtime = scopes.kubelets.runtime(node)
    except ConnectionError as error:
        raise new_service_unavailable(f"error trying to reach service: {error}") from None
    if runtime is None:
        return location
    port = location.port if location.port is not None else 443 if location.scheme == "https" else 80
    dial: Dial = lambda: runtime.dial(pod, port)  # noqa: E731
    return replace(location, dial=dial)


def _is_global_unicast(text: str) -> bool:
    """Upstream: net.IP.IsGlobalUnicast."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified)


async def _check_proxyable(host: str) -> None:
    """StatusError 400: the name isn't known, or one of its addresses leads back to this machine."""
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise new_bad_request(lookup_failure(host, error)) from None
    if not all(_is_global_unicast(str(row[4][0])) for row in addresses):
        raise new_bad_request(_NOT_ALLOWED)
