"""POSTs to webhooks: one JSON document over HTTPS, the certificate checked against the CA bundle that came with the address.

Connections are kept for reuse if the caller keeps them, redirects are not followed, and errors are in Go's words.
Upstream: k8s.io/apiserver/pkg/util/{webhook/client.go,proxy/proxy.go}, k8s.io/client-go/rest/request.go, crypto/x509/verify.go.
"""

import asyncio
import base64
import errno
import os
import posixpath
import socket
import ssl
import tempfile
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, field

from fakeapiserver.apimachinery.duration import format_duration
from fakeapiserver.apimachinery.errors import answered
from fakeapiserver.apimachinery.go.strconv import parse_uint
from fakeapiserver.transport.connections import Connection, IdleConnections
from fakeapiserver.transport.proxy import tunnel
from fakeapiserver.transport.resolver import lookup_failure
from fakeapiserver.transport.service_resolver import Resolve
from fakeapiserver.transport.tls_dial import CertificateOutsideItsTime, open_tls

# Upstream reads whatever comes; this is far beyond what it can use.
MAX_RESPONSE_BYTES: Final = 32 * 1024 * 1024
_CHUNK: Final = 65536
_MAX_CONTEXTS: Final = 200
_HTTPS_PORT: Final = 443
# What OpenSSL's verification ends with when no authority of the bundle has signed.
_UNKNOWN_AUTHORITY: Final = frozenset((2, 18, 19, 20, 21))
_EXPIRED: Final = frozenset((9, 10))


class WebhookError(Exception):
    """The call failed; the text is client-go's.

    `status` is that of the answer, 0 without one; `retry_after` the seconds that it asks to wait, or None.
    `reset`: the connection broke; `timed_out`: there was no answer in time.
    """

    def __init__(
        self,
        text: str,
        status: int = 0,
        retry_after: int | None = None,
        *,
        reset: bool = False,
        timed_out: bool = False,
    ) -> None:
        super().__init__(text)
        self.timed_out = timed_out
        self.status = status
        self.retry_after = retry_after
        self.reset = reset

    @property
    def is_transient(self) -> bool:
        """Worth another try (upstream: webhook.DefaultShouldRetry)."""
        server_failed = (
            self.status >= 500 and self.status != 503
        )  # who is unavailable has said for how long, or is left alone
        return self.reset or self.status == 429 or server_failed or self.retry_after is not None


class Identity(Struct, frozen=True):
    """The identity of a call: PEM of a client certificate and its key, or the value of an Authorization header."""

    certificate: bytes = b""
    key: bytes = b""
    authorization: str = ""
    user_agent: str = "kube-apiserver-admission"


Trust = tuple[str, bytes, Identity, bool, bool]


class Endpoint(Struct, frozen=True):
    """The address in a client config.

    `url` is without a query; for a Service, `service` is to be resolved. `server_name` is the name that the
    certificate must have, if not
    the host's; `insecure` accepts any certificate, `plain` is without TLS, `proxy` the URL of a proxy. With
    `has_changing_credentials`
    the call has more credentials than the identity. `webhook` is the webhook's name.
    """

    url: str
    host: str
    port: int
    ca_bundle: bytes = b""
    service: tuple[str, str, int] | None = None
    identity: Identity = Identity()
    server_name: str = ""
    insecure: bool = False
    plain: bool = False
    proxy: str = ""
    has_changing_credentials: bool = False
    webhook: str = ""

    @property
    def trust(self) -> Trust:
        """Returns what an open connection has verified and presented, besides its address."""
        return self.server_name or self.host, self.ca_bundle, self.identity, self.insecure, self.plain


# Host, port, and what has been proved there.
Idle = IdleConnections[tuple[str, int, str, bytes, Identity, bool, bool]]


class Response(Struct):
    """An answer. Header names are in lower case."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    # Whether the connection it came on may be used again.
    reusable: bool = False


class WebhookConnections(Idle):
    """The connections to webhooks. `intercept`, if it is set, sees each call before it is sent: it returns the answer in place of the
    webhook, or None to let the call go on, and raises what a call would raise. `moved`: the servers that listen at another port of
    this machine than the stored addresses name, by host and port."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: dict[tuple[str, int], int] = {}
        self.intercept: Callable[[Endpoint], Awaitable[Response | None]] | None = None


def endpoint_of(client: Mapping[str, Any], webhook: str = "") -> Endpoint:
    """The endpoint of the clientConfig of a `webhook`, as it is validated when it is stored."""
    bundle = base64.b64decode(client.get("caBundle") or "")
    if (service := client.get("service")) is not None:
        name, namespace, port = service["name"], service["namespace"], service.get("port") or _HTTPS_PORT
        host = f"{name}.{namespace}.svc"
        url = f"https://{host}:{port}{_cleaned(service.get('path') or '')}"
        return Endpoint(url, host, port, bundle, (namespace, name, port), webhook=webhook)
    parts = urlsplit(client.get("url") or "")
    url = f"{parts.scheme}://{parts.netloc}{_cleaned(parts.path)}"
    return Endpoint(url, parts.hostname or "", parts.port or _HTTPS_PORT, bundle, webhook=webhook)


def _cleaned(path: str) -> str:
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


class WebhookClient:
    """Calls webhooks. `resolve` finds what a Service stands for; without `connections` each call has one of its own."""

    def __init__(self, resolve: Resolve, connections: WebhookConnections | None = None) -> None:
        self._resolve = resolve
        self._connections = connections

    async def post(self, endpoint: Endpoint, body: bytes, timeout: float, told: float | None = None) -> bytes:
        """Returns the body of a 2xx answer within `timeout` seconds; the webhook gets `told` as its time-out.

        Raises WebhookError, also for an empty body.
        """
        response = await self.send(endpoint, body, timeout, told)
        if not response.body:
            content_type = response.headers.get("content-type") or "application/json"
            raise WebhookError(
                f"0-length response with status code: {response.status} and content type: {content_type}"
            )
        return response.body

    async def send(self, endpoint: Endpoint, body: bytes, timeout: float, told: float | None = None) -> Response:
        """A 2xx answer within `timeout` seconds, whatever it says. WebhookError."""
        url = f"{endpoint.url}?timeout={format_duration(timeout if told is None else told)}"
        try:
            async with asyncio.timeout(timeout):
                response = await self._exchange(endpoint, url, body)
        except TimeoutError:
            raise WebhookError(f'Post "{url}": context deadline exceeded', timed_out=True) from None
        except (OSError, LookupError, EOFError) as error:
            reset = isinstance(error, ConnectionResetError)
            raise WebhookError(f'Post "{url}": {reason(error, endpoint.host, endpoint.port)}', reset=reset) from error
        if not 200 <= response.status <= 206:
            raise WebhookError(_refusal(response), response.status, _retry_after(response))
        return response

    async def _exchange(self, endpoint: Endpoint, url: str, body: bytes) -> Response:
        connections = self._connections
        if connections is not None and connections.intercept is not None:
            answer = await connections.intercept(endpoint)
            if answer is not None:
                return answer
        host, port = self._resolve(*endpoint.service) if endpoint.service else (endpoint.host, endpoint.port)
        if connections is not None:
            port = connections.moved.get((host, port), port)
        parts = urlsplit(url)
        head = (
            f"POST {parts.path or '/'}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"User-Agent: {endpoint.identity.user_agent}\r\n"
            f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
            f"{_authorization(endpoint.identity)}Accept-Encoding: gzip\r\n\r\n"
        )
        key = (host, port, *endpoint.trust)
        connection = connections.take(key) if connections is not None else None
        if connection is None:
            connection = Connection(*await _connect(endpoint, host, port))
        try:
            connection.writer.write(head.encode() + body)
            response = await read_response(connection.reader)
        except BaseException:
            connection.abort()
            raise
        if connections is not None and response.reusable:
            connections.keep(key, connection)
            return response
        connection.close()
        with suppress(OSError):
            await connection.writer.wait_closed()
        return response


def _authorization(identity: Identity) -> str:
    return f"Authorization: {identity.authorization}\r\n" if identity.authorization else ""


async def _connect(endpoint: Endpoint, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.plain:
        return await (_tunnel(endpoint, host, port) if endpoint.proxy else asyncio.open_connection(host, port))
    identity, name = endpoint.identity, endpoint.server_name or endpoint.host
    context = _context(endpoint.ca_bundle, identity.certificate, identity.key, endpoint.insecure)
    if endpoint.proxy:
        reader, writer = await _tunnel(endpoint, host, port)
        await writer.start_tls(context, server_hostname=name)
    else:
        reader, writer = await open_tls(host, port, context, name)
    try:
        if not endpoint.insecure:
            check_host(name, writer.get_extra_info("peercert") or {})
    except OSError:
        writer.close()
        raise
    return reader, writer


async def _tunnel(endpoint: Endpoint, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await tunnel(endpoint.proxy, host, port)


async def read_response(reader: asyncio.StreamReader) -> Response:
    """The whole response. EOFError when the peer closes before it is complete."""
    import httptools

    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    answer.stays = parser.should_keep_alive
    while not answer.complete:
        data = await reader.read(_CHUNK)
        if not data:
            if not answer.ends_with_connection:
                raise EOFError("unexpected EOF" if answer.response.status else "EOF")
            break
        try:
            parser.feed_data(data)
        except httptools.HttpParserError as error:
            if answer.complete:  # a body where the status allows none
                answer.response.reusable = False
                break
            raise OSError(f"net/http: HTTP/1.x transport connection broken: {error}") from None
        finally:
            answer.response.status = parser.get_status_code()
        if answer.size > MAX_RESPONSE_BYTES:
            raise OSError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
    response = answer.response
    response.body = b"".join(answer.pieces)
    if response.headers.get("content-encoding") == "gzip":
        try:
            response.body = zlib.decompressobj(31).decompress(response.body, MAX_RESPONSE_BYTES)
        except zlib.error:
            raise OSError("gzip: invalid header") from None
    return response


class _Answer:
    """Collects what the parser reports."""

    def __init__(self) -> None:
        self.response = Response()
        self.complete = False
        self.stays: Callable[[], bool] = lambda: False
        self.pieces: list[bytes] = []
        self.size = 0
        self._headers_complete = False

    @property
    def ends_with_connection(self) -> bool:
        """A body of neither a length nor chunks ends when the connection does."""
        headers = self.response.headers
        return self._headers_complete and "content-length" not in headers and "transfer-encoding" not in headers

    def on_header(self, name: bytes, value: bytes) -> None:
        self.response.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._headers_complete = True

    def on_body(self, data: bytes) -> None:
        self.pieces.append(data)
        self.size += len(data)

    def on_message_complete(self) -> None:
        self.complete = True
        self.response.reusable = self.stays()


@lru_cache(_MAX_CONTEXTS)
def _context(ca_bundle: bytes, certificate: bytes, key: bytes, insecure: bool) -> ssl.SSLContext:
    context = trusting(ca_bundle)
    if certificate:
        _identify(context, certificate, key)
    if insecure:
        context.verify_mode = ssl.CERT_NONE
    return context


def trusting(ca_bundle: bytes) -> ssl.SSLContext:
    """Returns a TLS context that trusts the bundle, or the system's authorities without one.

    Names are checked later, for better errors.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    if not ca_bundle:
        context.load_default_certs()
    else:
        with suppress(ssl.SSLError):  # a bundle without certificates trusts no server
            context.load_verify_locations(cadata=ca_bundle.decode("ascii", "ignore"))
    # Go takes any certificate of the bundle for a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context


def check_pair(certificate: bytes, key: bytes) -> None:
    """OSError unless a client can present the certificate with the key, both PEM."""
    _identify(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)


def _identify(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads a certificate and its key from a file only."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


# ------------------------------------------------------------------- Go's words


def check_host(host: str, certificate: Mapping[str, Any]) -> None:
    """OSError in crypto/x509's words unless the certificate (as `getpeercert` shows it) is for this host."""
    names: Sequence[tuple[str, str]] = certificate.get("subjectAltName", ())
    addresses = [value for kind, value in names if kind == "IP Address"]
    hosts = [value for kind, value in names if kind == "DNS"]
    try:
        address = ip_address(host)
    except ValueError:
        if not any(_matches(pattern.lower().rstrip("."), host.lower().rstrip(".")) for pattern in hosts):
            raise _not_for(host, hosts, names) from None
        return
    if any(ip_address(address_text) == address for address_text in addresses):
        return
    if not addresses:
        raise OSError(
            f"tls: failed to verify certificate: x509: cannot validate certificate for {host} because it doesn't contain "
            "any IP SANs"
        )
    raise _not_for(host, addresses, names)


def _not_for(host: str, valid: Sequence[str], names: Sequence[tuple[str, str]]) -> OSError:
    prefix = "tls: failed to verify certificate: x509: certificate"
    if valid:
        return OSError(f"{prefix} is valid for {', '.join(valid)}, not {host}")
    if not names:
        return OSError(f"{prefix} relies on legacy Common Name field, use SANs instead")
    return OSError(f"{prefix} is not valid for any names, but wanted to match {host}")


def _matches(pattern: str, host: str) -> bool:
    """A star stands for the whole first label."""
    first, dot, rest = pattern.partition(".")
    return pattern == host or (first == "*" and bool(dot) and host.partition(".")[2] == rest)


def reason(error: Exception, host: str, port: int) -> str:
    """Returns Go's words for the error of a connection to `host` and `port`."""
    if isinstance(error, CertificateOutsideItsTime):
        return error.words
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _UNKNOWN_AUTHORITY:
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        if error.verify_code in _EXPIRED:
            return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
        return f"tls: failed to verify certificate: x509: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "http: server gave HTTP response to HTTPS client"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: {lookup_failure(host, error)}"
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError):
        return "EOF"
    if isinstance(error, OSError) and error.errno in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH):
        shown = f"[{host}]" if ":" in host else host
        return f"dial tcp {shown}:{port}: connect: {os.strerror(error.errno).lower()}"
    return str(error.args[0] if isinstance(error, LookupError) else error)


def _retry_after(response: Response) -> int | None:
    """The seconds of the header Retry-After; None if it has none, or something else."""
    try:
        return parse_uint(response.headers.get("retry-after", ""))
    except ValueError:
        return None


def _refusal(response: Response) -> str:
    """Returns client-go's message for a status that is no success."""
    return answered(response.status, response.headers.get("content-type", ""), response.body, "POST").message
