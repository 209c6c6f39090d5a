"""The options of a connection (exec, attach, port-forward, proxies) from its query and path, as the object that admission sees.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/{rest.go ConnectResource, get.go getRequestOptions}, k8s.io/apimachinery/pkg/
runtime/converter.go, k8s.io/api/core/v1/types.go.
"""

from typing import Final

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.go.strconv import parse_uint
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes

_STREAMS: Final = ("stdin", "stdout", "stderr", "tty")


async def admitted(request: Request, scope: RequestScope, scopes: RequestScopes) -> Object:
    """Returns the options after admission. Raises StatusError 400 for invalid ones, and admission's refusals."""
    if request.query.get("dryRun"):
        raise new_bad_request("dryRun is not supported")
    info = request.info
    kind = scope.resource.subresources[info.subresource].gvk
    options = {"kind": kind.kind, "apiVersion": str(kind.group_version), **_options(request)}
    for step in (scopes.services.admission.admit, scopes.services.admission.validate):
        attributes = Attributes(
            "CONNECT",
            kind,
            scope.resource.gvr,
            info.subresource,
            info.namespace,
            info.name,
            options,
            None,
            request.user,
            warnings=request.warnings,
            annotations=request.audit,
        )
        await step(attributes)
        options = attributes.object or options
    return options


def _options(request: Request) -> Object:
    subresource = request.info.subresource
    if subresource == "proxy":
        path = proxied_path(request)
        return {"path": path} if path else {}
    if subresource == "portforward":
        ports = [_port(text) for value in request.query.get("ports", ()) for text in value.split(",")]
        return {"ports": ports} if ports else {}
    options: Object = {name: True for name in _STREAMS if is_true(request.query.get(name, []))}
    if container := request.param("container"):
        options["container"] = container
    if subresource == "exec":
        options["command"] = request.query.get("command") or None
    return options


def proxied_path(request: Request) -> str:
    """Returns the part of the path after `proxy`, with its slashes."""
    info = request.info
    parts = info.path.strip("/").split("/")
    below = "/".join(parts[7 if info.namespace else 5 :])
    path = f"/{below}" if below and not below.startswith("/") else below
    return path if path.endswith("/") or not info.path.endswith("/") else f"{path}/"


def is_true(values: list[str]) -> bool:
    """Anything but 0 and false, nothing at all included."""
    return bool(values) and values[0] != "0" and values[0].lower() != "false"


def _port(text: str) -> int:
    try:
        return parse_uint(text, 16)
    except ValueError as error:
        raise new_bad_request(f"cannot convert to []int32: {error}") from None
