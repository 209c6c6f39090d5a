"""Asks kubelets that run elsewhere, for who asks this server for logs, commands, ports and whatever else a node answers.

Upstream: pkg/kubelet/client/kubelet_client.go, pkg/registry/core/pod/strategy.go (LogLocation, streamLocation), pkg/registry/core/node/
strategy.go (ResourceLocation), k8s.io/apiserver/pkg/registry/generic/rest/streamer.go, k8s.io/apimachinery/pkg/util/proxy.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import (
    new_bad_request,
    new_generic_server_response,
    new_internal_error,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.streaming import KubeletError, Streams
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.streams.connect_options import is_true
from fakeapiserver.endpoints.streams.port_forward import TUNNEL
from fakeapiserver.endpoints.streams.proxy import Location
from fakeapiserver.endpoints.streams.websocket import accept
from fakeapiserver.server.proxies import kubelet_streams
from fakeapiserver.server.proxies.resource_proxy import ResourceProxy
from fakeapiserver.server.proxies.reverse_proxy import (
    SWITCHING,
    UpgradeError,
    body_chunks,
    credential_free,
    forwarded_for,
    head_of,
    relayed,
    switched,
    upgraded,
    while_connected,
)
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.round_trip import Headers, Target, Transport, TransportError
from fakeapiserver.transport.spdy import SPDY

ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_PORT: Final = 10250
_MAX_TEXT: Final = 50_000
# The headers of a client's WebSocket handshake, which are replaced.
_HANDSHAKE: Final = frozenset(
    (
        b"sec-websocket-key",
        b"sec-websocket-protocol",
        b"sec-websocket-version",
        b"upgrade",
        kubelet_streams.VERSION_HEADER,
        b"x-forwarded-for",
    )
)


class KubeletClient:
    """`client`: the certificate that shows who asks. `ca_bundle`: who signs kubelets' certificates; b"": anybody may have.
    `address_types`: the ones of a node's addresses that are tried, the first first."""

    def __init__(
        self, client: KeyPair | None = None, ca_bundle: bytes = b"", address_types: Sequence[str] = ADDRESS_TYPES
    ) -> None:
        self._transport = Transport(client)
        self._ca_bundle = ca_bundle
        self._proxy = ResourceProxy(self._transport, ca_bundle)
        self._address_types = address_types

    def check_addresses(self, node: Object) -> None:
        """StatusError 500: none is of a type that is wanted."""
        known = (node.get("status") or {}).get("addresses") or ()
        if not any(row["type"] in self._address_types for row in known):
            shown = " ".join(f"{{{row['type']} {row['address']}}}" for row in known)
            raise status_error(500, "", f"no preferred addresses found; known addresses: [{shown}]")

    def address(self, node: Object) -> tuple[str, int]:
        """Host and port; without an address no host."""
        status = node.get("status") or {}
        port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port") or _PORT
        known = {row["type"]: row["address"] for row in reversed(status.get("addresses") or ())}
        return next((known[kind] for kind in self._address_types if kind in known), ""), port

    def authority(self, node: Object) -> str:
        """`10.0.0.3:10250`"""
        return self._target(node).authority

    async def logs(self, request: Request, node: Object, path: str) -> Response:
        """StatusError: the kubelet can't be reached, or what it says instead of a log."""
        target = self._target(node)
        if is_true(request.query.get("insecureSkipTLSVerifyBackend", [])):
            target = replace(target, ca_bundle=b"", insecure=True)
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
        target = self._target(node)
        headers = [(b"host", target.authority.encode()), *credential_free(request.headers)]
        headers = [(name, value) for name, value in headers if name != b"x-forwarded-for"]
        headers.append((b"x-forwarded-for", forwarded_for(request)))
        try:
            return await upgraded(request, self._transport, target, head_of(request.method, path, headers))
        except UpgradeError as error:
            raise status_error(500, "", str(error)) from None

    async def execute(self, node: Object, path: str, streams: Streams) -> int:
        """Runs over SPDY what `path` says; its exit code. KubeletError: the kubelet can't be reached, or refuses."""
        target = self._target(node)
        headers = [
            (b"host", target.authority.encode()),
            (b"user-agent", b"Go-http-client/1.1"),
            (b"content-length", b"0"),
        ]
        headers += [(b"connection", b"Upgrade"), *_spdy_headers(kubelet_streams.PROTOCOLS)]
        try:
            connection, status, answered = await switched(self._transport, target, head_of("POST", path, headers))
        except UpgradeError as error:
            url = go_quote(f"https://{target.authority}{path}")
            # for SPDY only the connection's error is reported
            raise KubeletError(500, f"error sending request: Post {url}: {error.__cause__ or error}") from None
        answered_headers = _by_name(answered)
        if status != SWITCHING or not kubelet_streams.speaks_spdy(answered_headers):
            try:
                text = await kubelet_streams.refusal(connection, answered_headers)
            finally:
                connection.close()
            raise KubeletError(500, f"unable to upgrade connection: {text}")
        return await kubelet_streams.run(connection, answered_headers.get("x-stream-protocol-version", ""), streams)

    async def tunnel(self, request: Request, node: Object, path: str, protocols: Sequence[str]) -> Response:
        """SPDY to the kubelet, inside of a WebSocket to the client, who offers `protocols` to be spoken in it. StatusError 500."""
        target = self._target(node)
        headers = [(b"host", target.authority.encode()), *credential_free(request.headers, _HANDSHAKE)]
        headers += [*_spdy_headers(protocols), (b"x-forwarded-for", forwarded_for(request))]
        try:
            connection, status, answered = await switched(self._transport, target, head_of("POST", path, headers))
        except UpgradeError as error:
            raise status_error(500, "", str(error)) from None
        if status != SWITCHING:
            return relayed(connection, status, answered)
        answered_headers = _by_name(answered)
        if not kubelet_streams.speaks_spdy(answered_headers):
            connection.close()
            return respond.text(500, "unable to upgrade: missing upgrade headers in response\n")
        spoken = answered_headers.get("x-stream-protocol-version", "").strip()
        accepted = accept(
            request, lambda socket: kubelet_streams.tunnel(connection, socket), (f"{TUNNEL}{spoken}" if spoken else "",)
        )
        if accepted.status != SWITCHING:
            connection.close()
        return accepted

    async def proxy(self, request: Request, location: Location) -> Response:
        """Whatever it is. StatusError 503, 500: it can't be reached."""
        return await self._proxy.serve(request, location)

    def _target(self, node: Object) -> Target:
        host, port = self.address(node)
        return Target(host, port, host, self._ca_bundle, insecure=not self._ca_bundle)


def _spdy_headers(protocols: Sequence[str]) -> Headers:
    return [(b"upgrade", SPDY.encode()), *((kubelet_streams.VERSION_HEADER, name.encode()) for name in protocols)]


def _by_name(headers: Headers) -> dict[str, str]:
    """The first of each name, in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reversed(headers)}


def _set(event: asyncio.Event) -> asyncio.Event:
    event.set()
    return event
