"""What a kubelet answers in a real cluster: logs, exec, attach, port-forward, proxies. This server has no kubelet, so it answers
what upstream answers before it would ask one, and 501 from there on.

Upstream: pkg/registry/core/pod/{strategy.go,rest/log.go,rest/subresources.go}, pkg/apis/core/validation (ValidatePodLogOptions).
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import (
    new_bad_request,
    new_forbidden,
    new_invalid,
    new_not_found,
    new_service_unavailable,
    status_error,
)
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.scalars import parse_time
from fakeapiserver.auth.interfaces import Attributes, Decision
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.connect_options import admitted
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.subresource import not_built

_PODS: Final = GroupResource("", "pods")
_NODES: Final = GroupResource("", "nodes")
_SERVICES: Final = GroupResource("", "services")
_ENDPOINTS: Final = GroupResource("", "endpoints")
_NUMBER: Final = re.compile("[+-]?[0-9]+")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


async def log(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Nothing (204) for a pod without a node."""
    respond.accepted(request, scope)
    if errors := _log_option_errors(request):
        raise new_invalid(GroupKind("", "PodLogOptions"), request.info.name, errors)
    pod = await _found(request, scope, request.info.name)
    _check_container(pod, request.param("container"))
    if not pod["spec"].get("nodeName"):
        return Response(204, content_type="")
    await _node(pod["spec"]["nodeName"], scopes, _PODS)
    raise not_built(scope, "log")


async def exec_(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    return await _streams(request, scope, scopes, into_container=True)


async def attach(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    return await _streams(request, scope, scopes, into_container=True)


async def port_forward(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    return await _streams(request, scope, scopes, into_container=False)


async def _streams(request: Request, scope: RequestScope, scopes: RequestScopes, *, into_container: bool) -> Response:
    options = await admitted(request, scope, scopes)
    await _check_may_create(request, scopes)
    pod = await _found(request, scope, request.info.name)
    if into_container:
        _check_container(pod, options.get("container") or "")
    if not pod["spec"].get("nodeName"):
        raise new_bad_request(f"pod {request.info.name} does not have a host assigned")
    _check_addresses(await _node(pod["spec"]["nodeName"], scopes, _PODS))
    raise not_built(scope, request.info.subresource)


async def _check_may_create(request: Request, scopes: RequestScopes) -> None:
    """A WebSocket is asked for by GET, and does what SPDY does by POST: it takes the right to create (upstream: rest/authorize.go)."""
    info = request.info
    if info.verb == "create" or scopes.authorizer is None:
        return
    wanted = Attributes(
        user=request.user,
        verb="create",
        path=info.path,
        resource_request=True,
        api_group=info.group,
        api_version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
    )
    decision, reason = await scopes.authorizer.authorize(wanted)
    if decision is not Decision.ALLOW:
        raise new_forbidden(GroupResource(info.group, info.resource), info.name, reason)


async def pod_proxy(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    await admitted(request, scope, scopes)
    name, _ = _name_and_port("pod", request.info.name)
    pod = await _found(request, scope, name)
    if not _is_global_unicast((pod.get("status") or {}).get("podIP") or ""):
        raise new_bad_request("address not allowed")
    raise not_built(scope, "proxy")


async def service_proxy(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    await admitted(request, scope, scopes)
    name, port = _name_and_port("service", request.info.name)
    if port and _NUMBER.fullmatch(port):
        service = await _found(request, scope, name)
        ports = service["spec"].get("ports") or ()
        if not any(found["port"] == int(port) for found in ports):
            raise new_service_unavailable(f"no service port {int(port)} found for service {field.go_quote(name)}")
    endpoints = scopes.store_for(_ENDPOINTS)
    assert endpoints is not None
    found = await endpoints.storage.get(endpoints.key(request.info.namespace, name))
    if found is None:
        raise new_not_found(_SERVICES, name)
    if not endpoints.decode(found.value).get("subsets"):
        raise new_service_unavailable(f"no endpoints available for service {field.go_quote(name)}")
    raise not_built(scope, "proxy")


async def node_proxy(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    await admitted(request, scope, scopes)
    name, _ = _name_and_port("node", request.info.name)
    _check_addresses(await _node(name, scopes, _NODES))
    raise not_built(scope, "proxy")


def _name_and_port(what: str, text: str) -> tuple[str, str]:
    """Of `name`, `name:port` or `scheme:name:port` (upstream: SplitSchemeNamePort)."""
    parts = text.split(":")
    scheme, name, port = ("", *parts, "")[:3] if len(parts) < 3 else parts[:3]
    if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
        raise new_bad_request(f"invalid {what} request {field.go_quote(text)}")
    return name, port


async def _found(request: Request, scope: RequestScope, name: str) -> Object:
    assert scope.store is not None
    return scope.store.decode((await scope.store.get(request.info.namespace, name)).value)


def _check_container(pod: Object, wanted: str) -> None:
    """StatusError 400 unless the pod has the container asked for, or has only one."""
    name = pod["metadata"]["name"]
    found = list(_container_names(pod["spec"]))
    if wanted and wanted not in found:
        raise new_bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(pod["spec"]["containers"]) != 1:
        choices = f"[{' '.join(found)}]"
        raise new_bad_request(f"a container name must be specified for pod {name}, choose one of: {choices}")


def _is_global_unicast(text: str) -> bool:
    """Upstream: net.IP.IsGlobalUnicast."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified)


def _container_names(spec: Object) -> Iterator[str]:
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            yield container["name"]


async def _node(name: str, scopes: RequestScopes, told: GroupResource) -> Object:
    """StatusError 404 where it isn't there; upstream says of a pod's node that the pod isn't."""
    nodes = scopes.store_for(_NODES)
    assert nodes is not None
    found = await nodes.storage.get(nodes.key("", name))
    if found is None:
        raise new_not_found(told, name)
    return nodes.decode(found.value)


def _check_addresses(node: Object) -> None:
    if not (node.get("status") or {}).get("addresses"):
        raise status_error(500, "", "no preferred addresses found; known addresses: []")


def _log_option_errors(request: Request) -> ErrorList:
    """StatusError 400 for what is no number and no time."""
    tail, limit, since = (_integer(request, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    since_time = request.param("sinceTime")
    if since_time:
        try:
            parse_time(since_time)
        except ValueError as error:
            raise new_bad_request(str(error)) from None
    errors: ErrorList = []
    if tail is not None and tail < 0:
        errors.append(field.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(field.invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and since_time:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(field.invalid("sinceSeconds", since, "must be greater than 0"))
    if request.param("stream"):
        errors.append(field.forbidden("stream", "may not be specified"))
    return errors


def _integer(request: Request, name: str) -> int | None:
    """A parameter as Go's ParseInt reads it."""
    text = request.param(name)
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise new_bad_request(f"strconv.ParseInt: parsing {field.go_quote(text)}: invalid syntax")
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise new_bad_request(f"strconv.ParseInt: parsing {field.go_quote(text)}: value out of range")
    return number
