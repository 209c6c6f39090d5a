"""Component statuses: nothing that is stored, but what a look at the control plane's parts finds now.

Upstream: pkg/registry/core/componentstatus, pkg/registry/core/rest/storage_core.go, pkg/probe/http.
"""

import asyncio
import ssl
from typing import Final

from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs import list as listing
from fakeapiserver.endpoints.verbs import selection
from fakeapiserver.endpoints.verbs.options import list_options
from fakeapiserver.storage.interface import Index, ListResult, StoredObject

# Where the others listen by default, on this machine.
_PORTS: Final = {"controller-manager": 10257, "scheduler": 10259}
# There is one storage, in this process.
_ETCD: Final = "etcd-0"
_PROBE_TIMEOUT: Final = 20.0


async def read(request: Request, scope: RequestScope) -> Response:
    """GET of one, or of all that the selectors let through. StatusError 400, 404, 406."""
    accept = respond.accepted(request, scope)
    if request.info.verb == "get":
        name = request.info.name
        if name != _ETCD and name not in _PORTS:
            raise new_not_found(GroupResource("", "componentstatus"), name)
        return respond.stored_object(request, scope, (await _status(name)).value, accept=accept)
    options = list_options(request.query)
    predicate = selection.predicate(options, request.info, scope)
    statuses = await asyncio.gather(*map(_status, (_ETCD, *_PORTS)))
    items = [item for item in statuses if predicate is None or predicate(item)]
    return await listing.answer(request, scope, accept, ListResult(items, 0), options)


async def _status(name: str) -> StoredObject:
    healthy, message = (True, "ok") if name == _ETCD else await _probe(_PORTS[name])
    condition = {"type": "Healthy", "status": "True" if healthy else "False", "message": message}
    value = json.encode({"metadata": {"name": name}, "conditions": [condition]})
    return StoredObject(name, value, 0, 0, Index(fields={"metadata.name": name}), 0)


async def _probe(port: int) -> tuple[bool, str]:
    """Whether /healthz answers well, and what it says."""
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            status, body = await _get(port)
    except (OSError, TimeoutError, ValueError) as error:
        return False, f'Get "https://127.0.0.1:{port}/healthz": {_told(error, port)}'
    if 200 <= status < 400:
        return True, body
    return False, f"HTTP probe failed with statuscode: {status}"


def _told(error: Exception, port: int) -> str:
    """Returns the error in Go's words."""
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    return "EOF" if isinstance(error, ValueError) else str(error) or "context deadline exceeded"


async def _get(port: int) -> tuple[int, str]:
    """ValueError for what isn't HTTP."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = (
        False,
        ssl.CERT_NONE,
    )  # as upstream does: these parts sign for themselves
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        agent = f"kube-probe/{NEWEST.removeprefix('v')}"
        writer.write(f"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: {agent}\r\n\r\n".encode())
        head, _, body = (await reader.read(1 << 16)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    _, status, *_ = head.split(maxsplit=2)
    return int(status), body.decode(errors="replace")
