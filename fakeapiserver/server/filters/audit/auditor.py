"""The filter that audits: a request's events from its arrival to the end of its answer.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/{audit,authn_audit,request_deadline}.go, pkg/audit/context.go.
"""

import asyncio
import html
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.auth.interfaces import Attributes, EvaluationError, UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Answered, Receive, Request, Response, Send
from fakeapiserver.endpoints.request_info import is_long_running
from fakeapiserver.server.app import new_id
from fakeapiserver.server.filters.audit.backends import Backend
from fakeapiserver.server.filters.audit.counts import AuditCounts
from fakeapiserver.server.filters.audit.event import (
    Event,
    object_reference,
    source_ips,
    status_of,
    user_agent,
    with_empties,
    without_managed_fields,
)
from fakeapiserver.server.filters.audit.policy import Level, Policy, RequestAuditConfig
from fakeapiserver.server.filters.authorization import attributes_of

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

log = logging.getLogger(__name__)

_UNKNOWN: Final = UserInfo("")
# Seconds that a stopping server waits for backends to take its last events.
_LAST_CHANCE: Final = 5.0
_ESCAPED: Final = re.compile(rb"[\w\-.~!$&'()*+,;=:@/\[\]%]*").fullmatch
_UNESCAPED: Final = "$&+,/:;=@"
_CLOSED_EARLY: Final[Object] = {"status": "Success", "message": "Connection closed early"}
_BASIC: Final = re.compile(r"basic [A-Za-z0-9+/]+=*", re.IGNORECASE).fullmatch
_NO_CREDENTIALS: Final = "Authentication failed, no credentials provided"
_READING: Final = frozenset(("get", "list", "watch"))
# A Status, which has the request's result, is logged at every level.
_MAY_BE_STATUS: Final = re.compile(rb'.{,30}"kind":"Status"').match
_TIMED_OUT: Final = {
    "status": "Failure",
    "message": "Timeout: request did not complete within the allotted timeout",
    "reason": "Timeout",
    "code": 504,
}


class AuditContext:
    """Gathers the audit event of a request while it is served (`endpoints.request.Audit` is the part that endpoints know)."""

    def __init__(
        self,
        backends: Sequence[Backend],
        clock: Clock,
        config: RequestAuditConfig,
        event: Event,
        counts: AuditCounts,
    ) -> None:
        self._backends = backends
        self._clock = clock
        self._config = config
        self._counts = counts
        self._response_object: Callable[[], bytes] | None = None
        self._last_annotations: dict[str, str] = {}
        self.event = event

    def annotate(self, key: str, value: str, *, with_request: bool = False, at_end: bool = False) -> None:
        """Adds an annotation; the first value for a key stays. `with_request`: only at the levels that log request bodies; `at_end`: when
        the response is complete.
        """
        if not with_request or self._config.level >= Level.REQUEST:
            (self._last_annotations if at_end else self.event.annotations).setdefault(key, value)

    def log_request_object(self, obj: Object, empties: "Empties") -> None:
        """The decoded body; it may be changed afterwards."""
        self.event.complete_reference(obj)
        if self._config.level >= Level.REQUEST:
            text = json.encode(obj)
            if empties:
                text = json.encode(with_empties(json.decode(text), empties))
            if b'"managedFields":[]' in text:
                text = json.encode(without_managed_fields(json.decode(text)))
            self.event.request_object = self._shown(text)

    def log_request_patch(self, data: bytes) -> None:
        if self._config.level >= Level.REQUEST:
            self.event.request_object = data

    def log_impersonated_user(self, user: UserInfo, constraint: str) -> None:
        """`constraint` is the verb that has allowed it, empty for the one that allows everything."""
        self.event.impersonated_user, self.event.constraint = user, constraint

    def log_response_object(self, encoded: Callable[[], bytes]) -> None:
        """Records the object of the response. A later call replaces it, since a response may still become an error."""
        self._response_object = encoded

    def log_response(self, response: Response) -> None:
        encoded, tells = self._response_object, self._config.level >= Level.REQUEST_RESPONSE
        if _is_nothing(response):
            self.event.response_status = status_of(_CLOSED_EARLY, response.status)
            return
        if encoded is None or response.stream is not None or response.takeover is not None:
            self.event.response_status = status_of(self.event.response_status, response.status)
            return
        may_be_status = response.status >= 400 or self.event.verb not in _READING
        text = encoded() if tells or may_be_status else b""
        self.event.response_status = status_of(_status(text) if may_be_status else None, response.status)
        if tells:
            self.event.response_object = self._shown(text)

    def _shown(self, text: bytes) -> bytes:
        if not self._config.omit_managed_fields or b'"managedFields"' not in text:
            return text
        return json.encode(without_managed_fields(json.decode(text)))

    async def process(self, stage: str) -> bool:
        """Reports whether all backends have taken the event."""
        if stage in self._config.omit_stages:
            return True
        self._counts.sent()
        received = stage == "RequestReceived"
        if stage == "ResponseComplete":
            self.event.annotations |= self._last_annotations
        try:
            event_object = self.event.at(stage, self.event.received if received else self._clock.now())
        except ValueError:
            self._counts.lost("log", 1, "its request object is no JSON")
            return False
        return all([await backend.process([event_object]) for backend in self._backends])


class Auditor:
    """Audits the requests of a server. `flush` sends the events that are still buffered to the backends that accept them."""

    def __init__(self, policy: Policy, backends: Sequence[Backend], clock: Clock, counts: AuditCounts) -> None:
        self._policy = policy
        self._counts = counts
        self._backends = backends
        self._clock = clock

    @property
    def background(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        return [backend.run for backend in self._backends]

    async def flush(self) -> None:
        try:
            async with asyncio.timeout(_LAST_CHANCE):
                for backend in self._backends:
                    await backend.flush()
        except TimeoutError:
            log.error("audit events were lost: they could not be sent before the end")

    @asynccontextmanager
    async def failure(self, request: Request) -> AsyncIterator[None]:
        try:
            yield
        except StatusError as error:  # `events` raises Answered for those of later filters
            await self._refused(request, error)
            raise

    @asynccontextmanager
    async def events(self, request: Request) -> AsyncIterator[None]:
        audit = self._context(request, attributes_of(request.info, request.user))
        if audit is not None:
            request.audit = audit
            if not await audit.process("RequestReceived"):
                self._counts.rejected()
                raise Answered(_not_stored(request))
        try:
            yield
        except (StatusError, Answered) as error:
            response = error.response if isinstance(error, Answered) else respond.refusal(request, error)
            if audit is not None:
                await self._record(audit, request, response)
            raise Answered(response) from error
        except BaseException as error:
            if audit is not None:
                await self._record_failure(audit, request, error)
            raise
        if audit is not None and request.response is not None:
            await self._record(audit, request, request.response)

    async def _refused(self, request: Request, error: StatusError) -> None:
        """Records a request without a user in one event."""
        audit = self._context(request, attributes_of(request.info, _UNKNOWN))
        if audit is not None:
            request.audit = audit
            unauthorized = error.status["code"] == 401
            audit.event.response_status = {"message": _attempted(request)} if unauthorized else error.status
            audit.log_response(respond.status_response(request, error.status))
            await audit.process("ResponseStarted")

    async def _record_failure(self, audit: AuditContext, request: Request, error: BaseException) -> None:
        """Records a request that no handler has answered."""
        if isinstance(error, EvaluationError):
            audit.event.response_status = status_of(None, 500)
        elif isinstance(error, asyncio.CancelledError):
            audit.event.response_status = status_of(_TIMED_OUT, 504)
        elif isinstance(error, Exception):
            status = {"status": "Failure", "message": f"APIServer panic'd: {error}", "reason": "InternalError"}
            audit.event.response_status = status_of(status, 500)
            await audit.process("Panic")
            return
        else:
            return
        await self._complete(audit, request)

    async def _record(self, audit: AuditContext, request: Request, response: Response) -> None:
        """Records a response; the last event of a stream follows when it ends."""
        audit.log_response(response)
        if response.stream is None and response.takeover is None:
            await self._complete(audit, request)
            return
        if is_long_running(request.info):
            await audit.process("ResponseStarted")
        if response.stream is not None:
            response.stream = _until_end(response.stream, audit)
        if response.takeover is not None:
            response.takeover = _taken_over(response.takeover, audit)

    async def _complete(self, audit: AuditContext, request: Request) -> None:
        if is_long_running(request.info):
            await audit.process("ResponseStarted")
        await audit.process("ResponseComplete")

    def _context(self, request: Request, attributes: Attributes) -> AuditContext | None:
        """Returns the context that audits a request, or None if the policy doesn't audit it."""
        config = self._policy.evaluate(attributes)
        self._counts.decided(config.level.text)
        if config.level is Level.NONE:
            return None
        if not request.header(b"audit-id"):
            request.first_headers[b"audit-id"] = new_id()
        event = Event(
            level=config.level,
            audit_id=request.header(b"audit-id"),
            request_uri=_uri(request),
            verb=attributes.verb,
            user=attributes.user,
            source_ips=source_ips(
                request.header(b"x-forwarded-for"),
                request.header(b"x-real-ip"),
                (request.scope.get("client") or ("",))[0],
            ),
            user_agent=user_agent(request.header(b"user-agent")),
            received=self._clock.now(),
            object_ref=object_reference(attributes),
        )
        return AuditContext(self._backends, self._clock, config, event, self._counts)


def _is_nothing(response: Response) -> bool:
    """A handler that has written nothing at all, for which Go sends an empty 200."""
    ends = response.stream is None and response.takeover is None
    return response.status == 200 and ends and not (response.body or response.content_type or response.headers)


def _status(text: bytes) -> Object | None:
    """The Status that is answered, if it is one."""
    obj = json.decode(text) if _MAY_BE_STATUS(text) else {}
    return obj if (obj.get("kind"), obj.get("apiVersion")) == ("Status", "v1") else None


async def _until_end(stream: AsyncGenerator[bytes, None], audit: AuditContext) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(stream):
            async for chunk in stream:
                yield chunk
    finally:
        await audit.process("ResponseComplete")


def _taken_over(
    takeover: Callable[[Receive, Send], Awaitable[None]], audit: AuditContext
) -> Callable[[Receive, Send], Awaitable[None]]:
    async def run(receive: Receive, send: Send) -> None:
        try:
            await takeover(receive, send)
        finally:
            await audit.process("ResponseComplete")

    return run


def _attempted(request: Request) -> str:
    """Describes the credentials that a client has sent (upstream: getAuthMethods), for requests that can't be answered with a Status."""
    authorization = request.header(b"authorization").strip()
    methods = ["basic"] if _BASIC(authorization) else []
    if " " in authorization and authorization.split(" ")[0].lower() == "bearer":
        methods.append("bearer")
    if request.param("access_token").strip():
        methods.append("access_token")
    if (request.scope.get("extensions", {}).get("tls") or {}).get("client_cert_der"):
        methods.append("x509")
    return f"Authentication failed, attempted: {', '.join(methods)}" if methods else _NO_CREDENTIALS


def _not_stored(request: Request) -> Response:
    message = f"Internal Server Error: {go_quote(_uri(request))}: failed to store audit event\n"
    response = respond.text(500, html.escape(message, quote=False))
    response.cache_control = b""
    return response


def _uri(request: Request) -> str:
    """Returns the request's URI as Go's net/url prints it: a path with invalid escapes is escaped again, and a query may be empty."""
    path: bytes = request.scope.get("raw_path") or quote(request.path).encode()
    if not _ESCAPED(path):
        path = quote(request.path, safe=_UNESCAPED).encode()
    query: bytes = request.scope.get("query_string", b"")
    if query or request.scope.get("target", b"").endswith(b"?"):
        path += b"?" + query
    return path.decode("latin-1")
