"""Asks kubelets that run elsewhere, for who asks this server for logs, commands, ports and whatever else a node answers.

Upstream: pkg/kubelet/client/kubelet_client.go, pkg/registry/core/pod/strategy.go (LogLocation, streamLocation), pkg/registry/core/node/
strategy.go (ResourceLocation), k8s.io/apiserver/pkg/registry/generic/rest/streamer.go, k8s.io/apimachinery/pkg/util/proxy.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.errors import (
    new_bad_request,
    new_generic_server_response,
    new_internal_error,
    status_error,
)
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.server.aggregator.proxy import (
    body_chunks,
    forwarded_for,
    framed_body,
    head_of,
    is_upgrade,
    parsed_head,
    relayed,
    while_connected,
    without_hops,
)
from fakeapiserver.transport.certificates import KeyPair
from fakeapiserver.transport.round_trip import Answer, Headers, Target, Transport, TransportError

ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_PORT: Final = 10250
_CREDENTIALS: Final = frozenset((b"authorization", b"host"))
_MAX_TEXT: Final = 50_000


class KubeletClient:
    """`client`: the certificate that shows who asks. `ca_bundle`: who signs kubelets' certificates; b"": anybody may have.
    `address_types`: the ones of a node's addresses that are tried, the first first."""

    def __init__(
        self, client: KeyPair | None = None, ca_bundle: bytes = b"", address_types: Sequence[str] = ADDRESS_TYPES
    ) -> None:
        self._transport = Transport(client)
        self._ca_bundle = ca_bundle
        self._address_types = address_types

    def check_addresses(self, node: Object) -> None:
        """StatusError 500: none is of a type that is wanted."""
        known = (node.get("status") or {}).get("addresses") or ()
        if not any(found["type"] in self._address_types for found in known):
            shown = " ".join(f"{{{found['type']} {found['address']}}}" for found in known)
            raise status_error(500, "", f"no preferred addresses found; known addresses: [{shown}]")

    def address(self, node: Object) -> tuple[str, int]:
        """Host and port; without an address no host."""
        status = node.get("status") or {}
        port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port") or _PORT
        known = {found["type"]: found["address"] for found in reversed(status.get("addresses") or ())}
        return next((known[kind] for kind in self._address_types if kind in known), ""), port

    def authority(self, node: Object) -> str:
        """`10.0.0.3:10250`"""
        return self._target(node).authority

    async def logs(self, request: Request, node: Object, path: str) -> Response:
        """StatusError: the kubelet can't be reached, or what it says instead of a log."""
        target = self._target(node)
        head = head_of("GET", path, [(b"host", target.authority.encode())])
        try:
            answer = await while_connected(
                request, self._transport.round_trip(target, head, "GET", None), _set(asyncio.Event())
            )
        except TransportError as error:
            url = go_quote(f"https://{target.authority}{path}")
            raise status_error(500, "", f"Get {url}: {error}") from None
        if not 200 <= answer.status <= 206:
            text = (await answer.body())[:_MAX_TEXT].decode("utf-8", "replace")
            if answer.status == 500:
                raise new_internal_error(text)
            raise new_bad_request(text) if answer.status == 400 else new_generic_server_response(answer.status, text)
        return Response(content_type="text/plain", stream=body_chunks(answer, None))

    async def upgrade(self, request: Request, node: Object, path: str) -> Response:
        """Bytes to and fro once the kubelet switches protocols. StatusError 500: it can't be reached."""
        return await self._upgraded(request, self._target(node), path)

    async def proxy(self, request: Request, node: Object, path: str, scheme: str, port: int) -> Response:
        """Whatever it is."""
        kubelet = self._target(node)
        target = Target(
            kubelet.host, port, kubelet.server_name, self._ca_bundle, not self._ca_bundle, plain=scheme == "http"
        )
        query = request.scope["query_string"].decode("latin-1")
        path = path + (f"?{query}" if query else "")
        if is_upgrade(request):
            return await self._upgraded(request, target, path)
        read = asyncio.Event()
        body = framed_body(request, read)
        if body is None:
            read.set()
        headers = without_hops(self._foreign(request))
        if request.header(b"transfer-encoding"):
            headers.append((b"transfer-encoding", b"chunked"))
        head = head_of(request.method, path, [(b"host", target.authority.encode()), *headers])
        try:
            answer = await while_connected(
                request, self._transport.round_trip(target, head, request.method, body), read
            )
        except TransportError as error:
            return respond.text(502, f"error trying to reach service: {error}\n")
        return _handed_on(answer)

    async def _upgraded(self, request: Request, target: Target, path: str) -> Response:
        body = await request.body()
        try:
            connection = await self._transport.connect(target)
        except TransportError as error:
            raise status_error(500, "", f"error dialing backend: {error}") from None
        try:
            headers = [(b"host", target.authority.encode()), *self._foreign(request)]
            headers = [(name, value) for name, value in headers if name != b"x-forwarded-for"]
            headers.append((b"x-forwarded-for", forwarded_for(request)))
            connection.writer.write(head_of(request.method, path, headers) + body)
            status, answered = parsed_head(await connection.reader.readuntil(b"\r\n\r\n"))
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            connection.close()
            raise status_error(500, "", str(error) if isinstance(error, ValueError) else "unexpected EOF") from None
        except BaseException:
            connection.close()
            raise
        return relayed(connection, status, answered)

    def _target(self, node: Object) -> Target:
        host, port = self.address(node)
        return Target(host, port, host, self._ca_bundle, insecure=not self._ca_bundle)

    @staticmethod
    def _foreign(request: Request) -> Headers:
        """The client's headers without its credentials."""
        return [
            (name, value)
            for name, value in request.headers
            if name not in _CREDENTIALS and not name.startswith(b"impersonate-")
        ]


def _handed_on(answer: Answer) -> Response:
    headers = [(name.lower(), value) for name, value in without_hops(answer.headers)]
    return Response(answer.status, b"", "", headers, stream=body_chunks(answer, None))


def _set(event: asyncio.Event) -> asyncio.Event:
    event.set()
    return event
