"""Requests to kubelets: logs, exec, attach, port-forward. Kubelets of simulated nodes are in this process; others are called at
their addresses (server/proxies/kubelet_client.py).

Upstream: pkg/registry/core/pod/{strategy.go,rest/log.go,rest/subresources.go}, pkg/apis/core/validation (ValidatePodLogOptions).
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import (
    new_bad_request,
    new_forbidden,
    new_internal_error,
    new_invalid,
    new_not_found,
    status_error,
)
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.scalars import parse_time
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.auth.interfaces import Attributes, Decision
from fakeapiserver.component_helpers.streaming import KubeletError, LogOptions, Runtime, Streams, Write
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.streams import port_forward as port_forwarding
from fakeapiserver.endpoints.streams import remote_command
from fakeapiserver.endpoints.streams.connect_options import admitted, is_true
from fakeapiserver.transport.pipe import Pipe

_PODS: Final = GroupResource("", "pods")
_NODES: Final = GroupResource("", "nodes")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
# The streams of a container's log: all output, or one of the two.
_STREAMS: Final = ("All", "Stdout", "Stderr")
# A gate, and the feature that a node declares if its kubelet speaks WebSockets itself.
_KUBELETS_WEBSOCKETS: Final = "ExtendWebSocketsToKubelet"


async def log(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Returns a container's log; 204 for a pod without a node."""
    respond.accepted(request, scope)
    streams = scopes.table.scheme.features.enabled("PodLogsQuerySplitStreams")
    if errors := log_option_errors(request, streams=streams):
        raise new_invalid(GroupKind("", "PodLogOptions"), request.info.name, errors)
    pod = await found_object(request, scope, request.info.name)
    container = _container(pod, request.param("container"))
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        return Response(204, content_type="")
    node = await found_node(node_name, scopes, _PODS)
    scopes.kubelet_client.check_addresses(node)
    try:
        runtime = scopes.kubelets.runtime(node_name) if scopes.kubelets is not None else None
        if runtime is None:
            return await scopes.kubelet_client.logs(request, node, _log_path(request, pod, container, streams=streams))
        chunks = await runtime.logs(pod, container, log_options(request, scopes.clock.now()))
    except ConnectionError as error:
        url = f"https://{scopes.kubelet_client.authority(node)}{_log_path(request, pod, container, streams=streams)}"
        raise status_error(500, "", f"Get {go_quote(url)}: {error}") from None
    except KubeletError as error:
        if error.status == 400:
            raise new_bad_request(str(error)) from None
        raise new_internal_error(str(error)) from None
    return Response(content_type="text/plain", stream=chunks)


async def exec_(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    options, pod, container, node, runtime = await _into_pod(request, scope, scopes)
    if runtime is None:
        return await _at_kubelet(request, scopes, node, _stream_path("exec", pod, container, options), options)

    async def process(streams: Streams) -> int:
        return await runtime.execute(pod, container, options.get("command") or (), streams)

    return await in_container(request, options, pod, container, runtime, process)


async def attach(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    options, pod, container, node, runtime = await _into_pod(request, scope, scopes)
    if runtime is None:
        return await _at_kubelet(request, scopes, node, _stream_path("attach", pod, container, options), options)

    async def process(streams: Streams) -> int:
        await runtime.attach(pod, container, streams)
        return 0

    return await in_container(request, options, pod, container, runtime, process)


async def _at_kubelet(request: Request, scopes: RequestScopes, node: Object, path: str, options: Object) -> Response:
    """Streams to and from a kubelet in another process."""
    if not (
        remote_command.closes_streams(request)
        and _stands_between(scopes, node, "TranslateStreamCloseWebsocketRequests")
    ):
        return await scopes.kubelet_client.upgrade(request, node, path)

    async def process(streams: Streams) -> int:
        return await scopes.kubelet_client.execute(node, path, streams)

    return await remote_command.serve(request, options, process)


def _stands_between(scopes: RequestScopes, node: Object, gate: str) -> bool:
    """Reports whether this server translates between a client's WebSocket and a kubelet's SPDY. Nodes declare it if their kubelet can do
    that itself.
    """
    features = scopes.table.scheme.features
    declared = (node.get("status") or {}).get("declaredFeatures") or ()
    return features.enabled(gate) and not (features.enabled(_KUBELETS_WEBSOCKETS) and _KUBELETS_WEBSOCKETS in declared)


async def in_container(
    request: Request, options: Object, pod: Object, container: str, runtime: Runtime, process: remote_command.Process
) -> Response:
    """Checks what the kubelet checks before it runs a process; its refusals are passed on unchanged."""
    if not any(options.get(name) for name in ("stdin", "stdout", "stderr")):
        return Response(400, b"you must specify at least 1 of stdin, stdout, stderr", "text/plain; charset=utf-8")
    try:
        runtime.check_running(pod, container)
    except KubeletError as error:
        return Response(error.status, str(error).encode(), "text/plain; charset=utf-8")
    if remote_command.closes_streams(request):
        process = remote_command.translated(process)
    return await remote_command.serve(request, options, process)


async def port_forward(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    options, pod, _, node, runtime = await _into_pod(request, scope, scopes)
    metadata = pod["metadata"]
    if runtime is None:
        query = urlencode([("port", port) for port in options.get("ports") or ()])
        path = f"/portForward/{metadata['namespace']}/{metadata['name']}{'?' if query else ''}{query}"
        tunnels = port_forwarding.tunnelled_protocols(request)
        if tunnels and _stands_between(scopes, node, "PortForwardWebsockets"):
            return await scopes.kubelet_client.tunnel(request, node, path, tunnels)
        return await scopes.kubelet_client.upgrade(request, node, path)
    if (pod.get("status") or {}).get("phase") != "Running":
        text = f"pod not found ({go_quote(metadata['name'] + '_' + metadata['namespace'])})"
        return Response(500, text.encode(), "text/plain; charset=utf-8")

    async def forward(port: int, received: Pipe, write: Write) -> None:
        await runtime.port_forward(pod, port, received, write)

    return await port_forwarding.serve(request, options, metadata["name"], metadata["uid"], forward)


async def _into_pod(
    request: Request, scope: RequestScope, scopes: RequestScopes
) -> tuple[Object, Object, str, Object, Runtime | None]:
    """The options as admitted, the pod, the container ("" for ports, which are the pod's), its node and who lets it run there (None:
    another process)."""
    options = await admitted(request, scope, scopes)
    await _check_may_create(request, scopes)
    pod = await found_object(request, scope, request.info.name)
    container = "" if request.info.subresource == "portforward" else _container(pod, options.get("container") or "")
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        raise new_bad_request(f"pod {request.info.name} does not have a host assigned")
    node = await found_node(node_name, scopes, _PODS)
    scopes.kubelet_client.check_addresses(node)
    if not any(b"upgrade" in value.lower() for name, value in request.headers if name == b"connection"):
        raise new_bad_request("Upgrade request required")
    try:
        runtime = scopes.kubelets.runtime(node_name) if scopes.kubelets is not None else None
    except ConnectionError as error:
        raise status_error(500, "", f"error dialing backend: {error}") from None
    return options, pod, container, node, runtime


async def _check_may_create(request: Request, scopes: RequestScopes) -> None:
    """A WebSocket begins with GET and does what SPDY does with POST, so it needs the right to create (upstream: rest/authorize.go)."""
    info = request.info
    if info.verb == "create":
        return
    if not scopes.table.scheme.features.enabled("AuthorizePodWebsocketUpgradeCreatePermission"):
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
    decision, reason = await scopes.services.authorizer.authorize(wanted)
    if decision is not Decision.ALLOW:
        raise new_forbidden(GroupResource(info.group, info.resource), info.name, reason)


def _stream_path(kind: str, pod: Object, container: str, options: Object) -> str:
    """The path at the kubelet (upstream: streamLocation)."""
    metadata = pod["metadata"]
    names = (("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty"))
    query = [*(("command", word) for word in options.get("command") or ())]
    query += [(name, "1") for option, name in names if options.get(option)]
    path = f"/{kind}/{metadata['namespace']}/{metadata['name']}/{container}"
    return f"{path}?{urlencode(query)}" if query else path


async def found_object(request: Request, scope: RequestScope, name: str) -> Object:
    assert scope.store is not None
    return scope.store.decode((await scope.store.get(request.info.namespace, name)).value)


def _container(pod: Object, wanted: str) -> str:
    """The requested container, or the only one. StatusError 400."""
    name = pod["metadata"]["name"]
    names = list(container_names(pod["spec"]))
    if wanted and wanted not in names:
        raise new_bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(pod["spec"]["containers"]) != 1:
        choices = f"[{' '.join(names)}]"
        raise new_bad_request(f"a container name must be specified for pod {name}, choose one of: {choices}")
    return wanted or str(pod["spec"]["containers"][0]["name"])


def container_names(spec: Object) -> Iterator[str]:
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            yield container["name"]


async def found_node(name: str, scopes: RequestScopes, told: GroupResource) -> Object:
    """The node. StatusError 404, in which upstream names the pod instead of its node."""
    nodes = scopes.store_for(_NODES)
    assert nodes is not None
    node = await nodes.storage.get(nodes.key("", name))
    if node is None:
        raise new_not_found(told, name)
    return nodes.decode(node.value)


def _log_path(request: Request, pod: Object, container: str, *, streams: bool) -> str:
    """Returns the kubelet's path for a log (upstream: LogLocation); `streams`: with the requested stream."""
    metadata = pod["metadata"]
    flags = {name: "true" for name in ("follow", "previous", "timestamps") if is_true(request.query.get(name, []))}
    given = {name: request.param(name) for name in ("limitBytes", "sinceSeconds", "sinceTime", "tailLines")}
    if streams:
        given["stream"] = request.param("stream") or _STREAMS[0]
    query = urlencode(sorted({**flags, **{name: value for name, value in given.items() if value}}.items()))
    return f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}{'?' if query else ''}{query}"


def log_options(request: Request, now: float) -> LogOptions:
    """The options of a log, after `log_option_errors` found none."""
    seconds, since_time = _integer(request, "sinceSeconds"), request.param("sinceTime")
    since = now - seconds if seconds is not None else seconds_of(since_time) if since_time else None
    return LogOptions(
        follow=is_true(request.query.get("follow", [])),
        previous=is_true(request.query.get("previous", [])),
        timestamps=is_true(request.query.get("timestamps", [])),
        since=since,
        tail_lines=_integer(request, "tailLines"),
        limit_bytes=_integer(request, "limitBytes"),
    )


def log_option_errors(request: Request, *, streams: bool = False) -> ErrorList:
    """Returns the errors of a log's options. `streams`: whether a stream may be chosen (PodLogsQuerySplitStreams).

    Raises StatusError 400 for invalid numbers and times.
    """
    since, since_time = _integer(request, "sinceSeconds"), request.param("sinceTime")
    if since_time:
        try:
            parse_time(since_time)
        except ValueError as error:
            raise new_bad_request(str(error)) from None
    tail, limit = _integer(request, "tailLines"), _integer(request, "limitBytes")
    errors: ErrorList = []
    if tail is not None and tail < 0:
        errors.append(field.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(field.invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and since_time:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(field.invalid("sinceSeconds", since, "must be greater than 0"))
    stream = request.param("stream")
    if stream and not streams:
        errors.append(field.forbidden("stream", "may not be specified"))
    elif stream and stream not in _STREAMS:
        errors.append(field.not_supported("stream", stream, _STREAMS))
    if stream and streams and stream != _STREAMS[0] and tail is not None:
        detail = "`tailLines` and specific `stream` are mutually exclusive for now"
        errors.append(field.forbidden("[]", detail))
    return errors


def _integer(request: Request, name: str) -> int | None:
    """A parameter as Go's ParseInt reads it."""
    text = request.param(name)
    try:
        return parse_int(text) if text else None
    except ValueError as error:
        raise new_bad_request(str(error)) from None
