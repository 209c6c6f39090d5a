"""Hands a request to the server that an APIService names, and its answer back: streaming, with the caller's identity in headers.

Upstream: k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, k8s.io/apimachinery/pkg/util/proxy/transport.go,
k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders).
"""

import asyncio
import posixpath
import re
import uuid
from typing import Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

from fakeapiserver.apimachinery.go.url import escaped_path
from fakeapiserver.auth.authenticators.requestheader import RequestHeaderConfig
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response, query_pairs
from fakeapiserver.endpoints.request_info import is_long_running
from fakeapiserver.server.aggregator.api_services import RemoteService
from fakeapiserver.server.filters.deadline import seconds_for
from fakeapiserver.server.proxies import reverse_proxy
from fakeapiserver.transport.round_trip import Answer, Headers, Target, Transport, TransportError
from fakeapiserver.transport.service_resolver import Resolve

# A group version's own document should be there at once, or not hold up every client's discovery.
_DISCOVERY_TIMEOUT: Final = 5.0
_DEADLINE_EXCEEDED: Final = "context deadline exceeded"
_REDIRECTED: Final = b"the backend attempted to redirect this request, which is not permitted"
_FORWARDED: Final = frozenset((b"x-forwarded-for", b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"))
_TOKEN: Final = "!#$&'*+-.^_`|~"
_URL: Final = re.compile(rb"(?:(?:https?:)?//(?P<host>[^/?#]*))?(?P<rest>.*)")


class Proxy:
    """Proxies to aggregated servers.

    `resolve` finds a Service; `request_timeout` (seconds) limits requests other than watches; `believed` are the
    headers that this server
    accepts identities from, `tells_uids` whether other servers get the uids of users. A redirect is forwarded
    only if it isn't rejected.
    """

    def __init__(
        self,
        transport: Transport,
        resolve: Resolve,
        request_timeout: float,
        *,
        believed: RequestHeaderConfig | None = None,
        rejects_redirects: bool = True,
        tells_uids: bool = True,
    ) -> None:
        self.transport = transport
        self._tells_uids = tells_uids
        self._resolve = resolve
        self._request_timeout = request_timeout
        self._rejects_redirects = rejects_redirects
        self._own = frozenset(believed.headers if believed is not None else ())
        self._own_prefixes = believed.prefixes if believed is not None else ()

    async def serve(self, request: Request, service: RemoteService) -> Response:
        """The answer of the APIService's server, or what kept it from answering."""
        if not service.available:
            return _unavailable("service unavailable")
        if problem := bundle_problem(service):
            return respond.text(500, problem + "\n")
        try:
            target = self.target(service)
        except LookupError:
            return _unavailable("service unavailable")
        if not request.header(b"audit-id"):
            request.headers.append((b"audit-id", str(uuid.uuid4()).encode()))
        forward = self._upgrade if reverse_proxy.is_upgrade(request) else self._forward
        if is_long_running(request.info):
            return await forward(request, target, None)
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds_for(request, self._request_timeout)
        limit = min(end, loop.time() + _DISCOVERY_TIMEOUT) if _is_discovery(request) else end
        try:
            async with asyncio.timeout_at(limit) as deadline:
                return await forward(request, target, end)
        except TimeoutError:
            if not deadline.expired():
                raise
            return _unreachable(_DEADLINE_EXCEEDED) if limit < end else respond.timed_out(request)

    def target(self, service: RemoteService) -> Target:
        """Returns the current address of its server. Raises LookupError."""
        host, port = self._resolve(service.service.namespace, service.service.name, service.service.port)
        return Target(
            host, port, service.service.server_name, service.ca_bundle, service.insecure, api_service=service.name
        )

    async def fetch(
        self, service: RemoteService, path: str, user: UserInfo, headers: Headers, timeout: float
    ) -> tuple[Answer, bytes]:
        """Returns the answer to a GET of this server's own, with the body, whether or not the APIService is available.

        Raises TransportError, also after `timeout` seconds; LookupError.
        """
        target = self.target(service)
        lines = [(b"Host", target.authority.encode()), *headers, *self._identity(user)]
        connected = asyncio.Event()
        try:
            async with asyncio.timeout(timeout):
                answer = await self.transport.round_trip(
                    target, reverse_proxy.head_of("GET", path, lines), "GET", None, connected
                )
                return answer, await answer.body()
        except TimeoutError:
            late = (
                _DEADLINE_EXCEEDED if connected.is_set() else "net/http: request canceled while waiting for connection"
            )
            raise TransportError(f"{late} (Client.Timeout exceeded while awaiting headers)") from None

    def _identity(self, user: UserInfo) -> Headers:
        """Returns the caller's identity in the headers that an aggregated server trusts."""
        headers = [(b"x-remote-user", _value(user.name))]
        if user.uid and self._tells_uids:
            headers.append((b"x-remote-uid", _value(user.uid)))
        headers += [(b"x-remote-group", _value(group)) for group in user.groups]
        for key, values in user.extra.items():
            name = f"x-remote-extra-{quote(key, safe=_TOKEN)}".encode()
            headers += [(name, _value(value)) for value in values]
        return headers

    async def _forward(self, request: Request, target: Target, end: float | None) -> Response:
        read = asyncio.Event()
        body = reverse_proxy.framed_body(request, read)
        head = _request_head(request, target, self._foreign(request), self._identity(request.user))
        try:
            answer = await reverse_proxy.while_connected(
                request, self.transport.round_trip(target, head, request.method, body), read
            )
        except TransportError as error:
            return _unreachable(str(error))
        except reverse_proxy.BodyLost:
            raise ConnectionResetError("the client left before its body was whole") from None
        if self._rejects_redirects and 300 <= answer.status <= 399 and answer.header(b"location"):
            answer.close()
            return Response(502, _REDIRECTED, "text/plain; charset=utf-8")
        # Both servers have the headers that every answer has.
        headers = [(b"cache-control", b"no-cache, private")]
        headers += [
            (name, redirected(value, target) if name.lower() == b"location" else value)
            for name, value in reverse_proxy.without_hops(answer.headers)
        ]
        return await reverse_proxy.streamed(request, answer.status, headers, reverse_proxy.body_chunks(answer, end))

    async def _upgrade(self, request: Request, target: Target, _: float | None) -> Response:
        head = _upgrade_head(request, target, self._foreign(request), self._identity(request.user))
        try:
            return await reverse_proxy.upgraded(request, self.transport, target, head)
        except reverse_proxy.UpgradeError as error:
            return _unavailable(str(error))

    def _foreign(self, request: Request) -> Headers:
        return reverse_proxy.credential_free(request.headers, self._own, self._own_prefixes)


def bundle_problem(service: RemoteService) -> str:
    """Why nothing can be checked against its CA bundle, or nothing."""
    if service.ca_bundle and b"-----BEGIN CERTIFICATE-----" not in service.ca_bundle:
        return "unable to load root certificates: unable to parse bytes as PEM block"
    return ""


def redirected(value: bytes, target: Target) -> bytes:
    """Returns the target of a redirect: on the server that it comes from, if it names no other."""
    authority = target.authority.encode()
    match = _URL.fullmatch(value)
    if match is None or match["host"] not in (None, b"", authority) or not match["rest"].startswith(b"/"):
        return value
    return b"https://" + authority + match["rest"]


# ------------------------------------------------------------------ what is said


def _unavailable(why: str) -> Response:
    return respond.text(503, why + "\n")


def _unreachable(why: str) -> Response:
    return _unavailable(f"error trying to reach service: {why}")


def _is_discovery(request: Request) -> bool:
    return not request.info.resource_request and request.path.strip("/").count("/") == 2


def _request_head(request: Request, target: Target, foreign: Headers, identity: Headers) -> bytes:
    headers = [(name, value) for name, value in reverse_proxy.handed_on(request, foreign) if name not in _FORWARDED]
    path = escaped_path(request.path)
    told = posixpath.normpath(path) + ("/" if path.endswith("/") else "")
    headers += [
        (b"x-forwarded-for", reverse_proxy.forwarded_for(request)),
        (b"x-forwarded-uri", told.encode()),
        (b"x-forwarded-host", target.authority.encode()),
        (b"x-forwarded-proto", b"https"),
    ]
    return reverse_proxy.head_of(
        request.method,
        path + _query(request),
        [(b"host", target.authority.encode()), *headers, *identity],
    )


def _upgrade_head(request: Request, target: Target, foreign: Headers, identity: Headers) -> bytes:
    """Everything as it came, but for who asks."""
    headers = [(name, value) for name, value in foreign if name != b"x-forwarded-for"]
    headers += [(b"x-forwarded-for", reverse_proxy.forwarded_for(request)), *identity]
    path = escaped_path(request.path) + _query(request)
    return reverse_proxy.head_of(request.method, path, [(b"host", target.authority.encode()), *headers])


def _value(text: str) -> bytes:
    return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "surrogateescape")


def _query(request: Request) -> str:
    """Returns the query as net/url encodes what it has read: sorted by name."""
    values: dict[bytes, list[bytes]] = {}
    for key, value in query_pairs(request.scope["query_string"]):
        name, text = (unquote_to_bytes(part.replace("+", " ").encode("latin-1")) for part in (key, value))
        values.setdefault(name, []).append(text)
    told = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name in sorted(values) for value in values[name])
    return "?" + told if told else ""
