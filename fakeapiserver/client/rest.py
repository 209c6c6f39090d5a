"""Requests to an API server: retried where upstream retries, refusals raised as StatusError.

Upstream: k8s.io/client-go/rest/{request,with_retry,client}.go.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from types import TracebackType
from typing import Final, Protocol, Self
from urllib.parse import quote, urlencode, urljoin, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.duration import format_duration
from fakeapiserver.apimachinery.errors import StatusError, answered
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.client.config import ImpersonationConfig, RESTConfig
from fakeapiserver.client.credentials import Credential, CredentialSource, impersonation_headers, source_of
from fakeapiserver.client.exec_plugin import ExecPlugin
from fakeapiserver.client.flowcontrol import TokenBucket
from fakeapiserver.client.round_tripper import Answer, HTTPRoundTripper, RoundTripper
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.transport.round_trip import Connection, TransportError

__all__ = [
    "JSON",
    "Object",
    "OnAnswer",
    "Params",
    "RESTClient",
    "RequestMetrics",
    "Response",
    "WatchEvent",
    "encode_body",
    "encode_query",
    "resource_path",
]

# A query's values; a bool becomes true or false, None, False and empty ones are left out. A sequence may name a key again.
Params = Mapping[str, "str | int | bool | None"] | Sequence[tuple[str, str]]
# Called with the headers of an answer, whose names are in lower case.
OnAnswer = Callable[[Mapping[str, str]], None]
JSON: Final = "application/json"
_MAX_RETRIES: Final = 10
_MAX_REDIRECTS: Final = 10
# Upstream treats a broken connection as a Retry-After of one second.
_BROKEN_SECONDS: Final = 1.0
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_ESCAPED: Final = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
_ESCAPES: Final = {text.encode(): f"\\u{ord(text):04x}".encode() for text in "<>&\u2028\u2029"}


class Response(Struct, frozen=True):
    """A whole answer that is no refusal. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Object:
        """The body. ValueError when it is no JSON object."""
        if not self.body:
            told = f"status code: {self.status} and content type: {self.headers.get('content-type', JSON)}"
            raise ValueError(f"0-length response with {told}")
        try:
            document = json.decode_plainly(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"the server's answer is no JSON: {error}") from None
        if not isinstance(document, dict):
            raise ValueError(f"the server's answer is no JSON object: {self.body[:80]!r}")
        return document


class WatchEvent(msgspec.Struct):
    """An event of a watch. `type`: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, whose `object` is a Status."""

    type: str
    object: Object


_decode_event: Final = msgspec.json.Decoder(WatchEvent).decode


class RequestMetrics(Protocol):
    """Counts requests, each try by itself: `rest_client_requests_total`, `rest_client_request_duration_seconds` (upstream:
    client-go/tools/metrics, ResultMetric and LatencyMetric)."""

    def __call__(self, code: str, method: str, host: str, seconds: float) -> None:
        """Counts a try.

        `code` is the answer's, such as `404`, or `<error>` without an answer; `host` is e.g. `127.0.0.1:6443`; `seconds` is the
        time until the head arrived.
        """


class RESTClient:
    """Sends requests to one API server, from one event loop. An async context manager; `close()` does the same.

    `transport`: carries requests other than over the network, e.g. to a server in this process.
    `metrics`: called for each try.
    """

    def __init__(
        self,
        config: RESTConfig,
        transport: RoundTripper | None = None,
        clock: Clock | None = None,
        *,
        metrics: RequestMetrics | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.config = config
        self._clock = clock
        self._sleep = sleep or asyncio.sleep
        self._transport = transport or HTTPRoundTripper(config, clock)
        self._credentials: CredentialSource = source_of(config, clock, ExecPlugin)
        parts = urlsplit(config.host)
        self._base = parts.path.rstrip("/")
        self._metrics = metrics
        self._scheme = parts.scheme
        self._host = parts.netloc.rpartition("@")[2]
        self._headers = (("User-Agent", config.user_agent), *impersonation_headers(config.impersonate))
        self._limiter = TokenBucket(config.qps, max(config.burst, 1)) if config.qps > 0 else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept."""
        self._transport.close()

    def impersonating(self, user: ImpersonationConfig) -> "RESTClient":
        """The same, in the name of another: over the same connections, which this one closes."""
        return self._over_the_same_connections(self.config.with_(impersonate=user))

    def with_turns_of_its_own(self) -> "RESTClient":
        """The same, but neither waits for requests of the other (`qps` and `burst` of the config): over the same connections, which
        this one closes."""
        return self._over_the_same_connections(self.config)

    def _over_the_same_connections(self, config: RESTConfig) -> "RESTClient":
        return RESTClient(config, self._transport, self._clock, metrics=self._metrics, sleep=self._sleep)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Object | bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> Response:
        """Sends one request and returns its whole answer. `path` begins with a slash and is escaped already; a dict body is sent as JSON.

        Tried again where the server says when (Retry-After with 429 or 5xx, up to ten times) and, if it only reads, where the
        connection broke. Redirects within the server are followed where that changes nothing: those of GET, and 307 and 308.
        StatusError: the server refuses; TransportError: there is no server, or its answer broke off; TimeoutError: after `timeout`
        seconds, or the config's, which the server gets as well; ValueError, OSError: an exec plugin or a token's file gives no
        credentials.
        """
        limit = timeout if timeout is not None else self.config.timeout
        target = self._base + path + encode_query(params)
        if limit is not None:
            target += f"{'&' if '?' in target else '?'}timeout={format_duration(limit)}"
        asked = _Request(method, target, body, content_type, accept)
        await self._wait_for_turn()
        try:
            async with asyncio.timeout(limit):
                answer = await self._ask(asked, retries_broken=method == "GET")
                content = await _whole(answer)
        except TimeoutError:
            raise TimeoutError(f"{self._named(asked)}: context deadline exceeded") from None
        response = _headers(answer)
        if not 200 <= answer.status <= 206:
            raise _refused(asked.method, answer, content)
        return Response(answer.status, response, content)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, params: Params | None = None, accept: str = JSON, timeout: float | None = None
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """The body of an answer as it comes; leaving the block ends it. `timeout` (seconds) is that of the answer's head. Tried again
        where the server says when. Raises as `request` does, and TransportError when the body breaks off."""
        asked = _Request(method, self._base + path + encode_query(params), None, "", accept)
        await self._wait_for_turn()
        async with self._streaming(asked, timeout, retries_broken=False) as answer:
            yield answer.chunks()

    async def watch(
        self,
        path: str,
        params: Mapping[str, "str | int | bool | None"],
        *,
        accept: str = JSON,
        timeout: float | None = 30.0,
        on_answer: OnAnswer | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """The events of a watch, until the server ends it. Close the generator (`aclosing`) to end it sooner. `timeout` (seconds) is
        that of the answer's head, `on_answer` is called with its headers. The client's own rate doesn't hold watches back.

        StatusError: the server refuses the watch; an ERROR event is given like the others. TransportError: the connection
        broke. ValueError: something else than events came. What `on_answer` raises."""
        asked = _Request("GET", self._base + path + encode_query({**params, "watch": True}), None, "", accept)
        async with self._streaming(asked, timeout, retries_broken=True) as answer:
            if answer.status != 200:
                raise ValueError(f"for request {self._url(asked.target)}, got status: {answer.status}")
            if on_answer is not None:
                on_answer(_headers(answer))
            rest = b""
            async for chunk in answer.chunks():
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line:
                        yield _event(line)
            if rest.strip():
                raise TransportError("unexpected EOF")

    async def dial(self) -> tuple[Connection, Sequence[tuple[str, str]]]:
        """A connection of one's own, and the headers that say who asks: for what changes the protocol. TransportError,
        ValueError for a transport that has no connections."""
        if not isinstance(self._transport, HTTPRoundTripper):
            raise ValueError("only a client that talks over the network can change the protocol")
        await self._wait_for_turn()
        credential = await self._credentials.current()
        known = [("Authorization", credential.authorization)] if credential.authorization else []
        return await self._transport.connect(credential.certificate), [*known, *self._headers]

    @asynccontextmanager
    async def _streaming(
        self, asked: "_Request", timeout: float | None, *, retries_broken: bool
    ) -> AsyncGenerator[Answer, None]:
        try:
            async with asyncio.timeout(timeout):
                answer = await self._ask(asked, retries_broken=retries_broken)
        except TimeoutError:
            raise TimeoutError(f"{self._named(asked)}: context deadline exceeded") from None
        try:
            if not 200 <= answer.status < 300:
                raise _refused(asked.method, answer, await _whole(answer))
            yield answer
        finally:
            await answer.finish()

    async def _ask(self, asked: "_Request", *, retries_broken: bool) -> Answer:
        """The answer to the only or to the last try. TransportError."""
        for attempt in range(_MAX_RETRIES + 1):
            try:
                answer, credential = await self._follow(asked)
            except TransportError as error:
                if not retries_broken or not error.reset or attempt == _MAX_RETRIES:
                    raise TransportError(f"{self._named(asked)}: {error}", reset=error.reset) from error
                pause = _BROKEN_SECONDS
            else:
                if answer.status == 401:
                    self._credentials.rejected(credential)
                said = _retry_after(answer)
                if said is None or attempt == _MAX_RETRIES:
                    return answer
                await answer.body()
                pause = max(0.0, said)
            await self._sleep(pause)
            await self._wait_for_turn()
        raise AssertionError("unreachable: the last attempt answers or raises")

    async def _follow(self, asked: "_Request") -> tuple[Answer, Credential]:
        """Sends a request and follows redirects within the server only, so that no other server gets the
        credentials.
        """
        target = asked.target
        for _ in range(_MAX_REDIRECTS):
            answer, credential = await self._send(asked, target)
            if not _is_redirect(asked.method, answer.status) or not (place := _header(answer, b"location")):
                return answer, credential
            url = urlsplit(urljoin(self._url(target), place))
            if (url.scheme, url.netloc) != (self._scheme, self._host):
                return answer, credential
            await answer.body()
            target = urlunsplit(("", "", url.path, url.query, ""))
        raise TransportError(f"stopped after {_MAX_REDIRECTS} redirects")

    async def _send(self, asked: "_Request", target: str) -> tuple[Answer, Credential]:
        credential = await self._credentials.current()
        headers = [("Accept", asked.accept), *self._headers]
        if credential.authorization:
            headers.insert(0, ("Authorization", credential.authorization))
        if asked.content:
            headers.append(("Content-Type", asked.content_type))
        start = perf_counter()
        try:
            answer = await self._transport.round_trip(
                asked.method, target, headers, asked.content, credential.certificate
            )
        except TransportError:
            self._count("<error>", asked.method, start)
            raise
        self._count(str(answer.status), asked.method, start)
        return answer, credential

    def _count(self, code: str, method: str, start: float) -> None:
        if self._metrics is not None:
            self._metrics(code, method, self._host, perf_counter() - start)

    def _url(self, target: str) -> str:
        return f"{self._scheme}://{self._host}{target}"

    def _named(self, asked: "_Request") -> str:
        """`Get "https://127.0.0.1:6443/version"`, as Go's client begins its errors."""
        return f'{asked.method.capitalize()} "{self._url(asked.target)}"'

    async def _wait_for_turn(self) -> None:
        if self._limiter is not None and (pause := self._limiter.reserve(self._clock.monotonic())):
            await self._sleep(pause)


class _Request:
    """A request, as it is sent on each try. `target` is path and query."""

    __slots__ = ("accept", "content", "content_type", "method", "target")

    def __init__(
        self,
        method: str,
        target: str,
        body: Object | bytes | None,
        content_type: str,
        accept: str,
    ) -> None:
        self.method = method
        self.target = target
        self.content = body if isinstance(body, bytes) else b"" if body is None else encode_body(body)
        self.content_type = content_type
        self.accept = accept


async def _whole(answer: Answer) -> bytes:
    try:
        return await answer.body()
    except TransportError as error:
        told = f"unexpected error when reading response body. Please retry. Original error: {error}"
        raise TransportError(told, reset=error.reset) from error


def _headers(answer: Answer) -> Mapping[str, str]:
    return {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in answer.headers}


def _header(answer: Answer, name: bytes) -> str:
    return next((value.decode("latin-1").strip() for key, value in answer.headers if key.lower() == name), "")


def _retry_after(answer: Answer) -> int | None:
    """Returns the seconds until the next try, or None if it must not be tried again."""
    if answer.status != 429 and answer.status < 500:
        return None
    return _seconds(_header(answer, b"retry-after"))


def _seconds(text: str) -> int | None:
    """The seconds in a Retry-After header. Dates are ignored, as upstream does."""
    return int(text) if _INTEGER.fullmatch(text) else None


def _is_redirect(method: str, status: int) -> bool:
    return status in (307, 308) or (method == "GET" and status in (301, 302, 303))


def _refused(method: str, answer: Answer, content: bytes) -> StatusError:
    content_type, pause = _header(answer, b"content-type"), _seconds(_header(answer, b"retry-after"))
    return answered(answer.status, content_type, content, method, pause or 0)


def _event(line: bytes) -> WatchEvent:
    try:
        return _decode_event(line)
    except RecursionError:
        return msgspec.convert(json.decode_plainly(line), WatchEvent)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"unable to decode an event from the watch stream: {error}") from None


def encode_body(body: Object | Sequence[Object]) -> bytes:
    """Returns the body as Go's encoder writes it, with `<`, `>` and `&` escaped, since the server compares the text of some fields."""
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], json.encode_plainly(body))


def encode_query(params: Params | None) -> str:
    """`?a=b&c=true`, or nothing."""
    if not params:
        return ""
    rows = params.items() if isinstance(params, Mapping) else params
    pairs = [
        (key, str(value).lower() if isinstance(value, bool) else str(value))
        for key, value in rows
        if value is not None and value != "" and value is not False
    ]
    return f"?{urlencode(pairs, quote_via=quote, safe='')}" if pairs else ""


def resource_path(
    group: str, version: str, resource: str, namespace: str = "", name: str = "", *subresources: str
) -> str:
    """`/apis/apps/v1/namespaces/default/deployments/web/scale`. ValueError for a name that no path can hold."""
    for part in (namespace, name, *subresources):
        if part in (".", "..") or "/" in part or "%" in part:
            raise ValueError(f'invalid resource name {part!r}: it may not be ".", ".." nor contain "/" or "%"')
    parts = [f"/apis/{group}" if group else "/api", version]
    if namespace:
        parts += ["namespaces", namespace]
    parts += [resource, *((name,) if name else ()), *subresources]
    return "/".join([parts[0], *(quote(part, safe=":") for part in parts[1:])])
