"""The handler chain: what runs before a request's own handler, a line each.

Upstream: k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain).
"""

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import StatusError, new_unauthorized
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.auth.attributes import ENTITIES, forbidden_error
from fakeapiserver.auth.interfaces import (
    Attributes,
    Authenticator,
    Authorizer,
    Credentials,
    Decision,
    EvaluationError,
    UserInfo,
)
from fakeapiserver.auth.selectors import Selectors
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.dispatch import dispatch
from fakeapiserver.endpoints.request import IN_PROCESS_USER, Request, Response
from fakeapiserver.endpoints.request_info import NoResource, RequestInfo, known_request_info, request_info
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.verbs.options import boolean, field_selector, list_options
from fakeapiserver.server.aggregator.aggregator import Aggregator
from fakeapiserver.server.filters.deadline import within_deadline
from fakeapiserver.server.filters.flowcontrol.limits import Limiter
from fakeapiserver.server.metrics import Metrics
from fakeapiserver.server.pages.fixed_paths import FixedPaths

if TYPE_CHECKING:
    from fakeapiserver.server.filters.audit.auditor import Auditor
    from fakeapiserver.server.filters.impersonation import Impersonation
    from fakeapiserver.server.filters.request_log import RequestLog

_DECISION: Final = "authorization.k8s.io/decision"
_REASON: Final = "authorization.k8s.io/reason"
_UNPROCESSABLE: Final = 422
_NOBODY: Final = UserInfo("")
# Authorizers see these as paths of the core group, but they aren't served.
_NO_GROUP: Final = ("//", "/apis//")
_WRITES: Final = frozenset(("create", "update", "patch", "delete", "deletecollection"))


class HandlerChain(Struct):
    """Calling it answers a request. The methods call each other from top to bottom: read the path, authenticate, audit,
    impersonate, limit, authorize, dispatch. StatusError 401, 403, 404, 405, 429, 503, 504."""

    authenticator: Authenticator
    authorizer: Authorizer
    scopes: RequestScopes
    fixed_paths: FixedPaths
    metrics: Metrics
    limiter: Limiter
    request_timeout: float
    aggregator: Aggregator
    auditor: "Auditor | None" = None
    compresses: bool = True
    request_log: "RequestLog | None" = None
    _impersonation: "Impersonation | None" = None

    async def __call__(self, request: Request) -> Response:
        if self.request_log is None:
            return await self._with_info(request)
        return await self.request_log.recorded(request, self._with_info)

    async def _with_info(self, request: Request) -> Response:
        try:
            request.info = _info(request)
        except NoResource:
            return _without_info(request)
        if self.auditor is None:
            return await within_deadline(request, self._identified, self.request_timeout)
        try:
            return await within_deadline(request, self._identified, self.request_timeout)
        except StatusError as error:
            # Refused before authentication; the auditor has recorded later refusals as answers.
            await self.auditor.refused(request, attributes_of(request.info, _NOBODY), error)
            raise

    async def _identified(self, request: Request) -> Response:
        request.user = await self._authenticate(request)
        if self.auditor is None:
            return await self._allowed_as(request)
        return await self.auditor.audited(request, attributes_of(request.info, request.user), self._allowed_as)

    async def _allowed_as(self, request: Request) -> Response:
        if _impersonates(request):
            request.user = await self._impersonate(request)
        return await self.limiter.run(request, self._admitted)

    async def _admitted(self, request: Request) -> Response:
        await self._authorize(request)
        if (service := self.aggregator.for_path(request.path)) is not None:
            return await self.aggregator.serve(request, service)
        response = await self.metrics.measured(request, self._serve)
        if response.stream is not None and request.header(b"upgrade"):
            from fakeapiserver.endpoints.streams import websocket

            if websocket.is_websocket_request(request):
                return await websocket.streamed(request, response)
        return response

    async def _serve(self, request: Request) -> Response:
        request.compresses = self.compresses
        if not request.info.resource_request or request.path.startswith(_NO_GROUP):
            return await self.fixed_paths.answer(request)
        response = await dispatch(request, self.scopes)
        if request.info.verb in _WRITES:
            # Watchers, which the write has woken, run first: a controller that sees its own writes late works on old states.
            await asyncio.sleep(0)
        return response

    async def _authenticate(self, request: Request) -> UserInfo:
        own: UserInfo | None = request.scope.get(IN_PROCESS_USER)
        if own is not None:
            return own
        start = perf_counter()
        try:
            user = await self.authenticator.authenticate(credentials(request))
            if user is None:
                raise new_unauthorized()
        except StatusError as error:
            self.metrics.authentication.refused(error, perf_counter() - start)
            raise
        self.metrics.authentication.succeeded(user.name, perf_counter() - start)
        return user

    async def _impersonate(self, request: Request) -> UserInfo:
        if self._impersonation is None:
            from fakeapiserver.server.filters.impersonation import Impersonation

            constrained = self.scopes.table.scheme.features.enabled("ConstrainedImpersonation")
            self._impersonation = Impersonation(self.authorizer, self.metrics.instruments, constrained=constrained)
        return await self._impersonation.user(request, attributes_of(request.info, request.user))

    async def _authorize(self, request: Request) -> None:
        attributes = attributes_of(request.info, request.user, selectors(request))
        start = perf_counter()
        try:
            decision, reason = await self.authorizer.authorize(attributes)
        except EvaluationError:
            self.metrics.authorization.failed(perf_counter() - start)
            if request.audit is not None:
                request.audit.annotate(_REASON, "internal error")
            raise
        self.metrics.authorization.decided(decision, perf_counter() - start)
        if request.audit is not None:
            request.audit.annotate(_DECISION, "allow" if decision is Decision.ALLOW else "forbid")
            request.audit.annotate(_REASON, reason)
        if decision is not Decision.ALLOW:
            raise forbidden_error(attributes, reason)


def _impersonates(request: Request) -> bool:
    """Whether a header asks for impersonation. One search for all names, since every request comes through here."""
    return b"\nimpersonate-" in b"\n".join((b"", *request.first_headers))


def _info(request: Request) -> RequestInfo:
    if not request.query:
        return known_request_info(request.method, request.path)
    return request_info(
        request.method,
        request.path,
        watch=boolean(request.query, "watch"),
        name_selector=_selected_name(request),
    )


def _without_info(request: Request) -> Response:
    """500 as text, for a path that can't be parsed (upstream: responsewriters.InternalError, before any other filter)."""
    target = request.scope["raw_path"].decode("latin-1")
    if query := request.scope["query_string"]:
        target += "?" + query.decode("latin-1")
    why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {target}"
    message = f"Internal Server Error: {go_quote(target)}: {why}\n"
    response = respond.text(500, message.translate(ENTITIES))
    response.cache_control = b""
    return response


def _selected_name(request: Request) -> str:
    """The name that a list's field selector requires, so that `resourceNames` in RBAC can allow it. Empty if any option can't be
    parsed: upstream parses all at once, and the list itself reports the error."""
    if not (text := request.param("fieldSelector")):
        return ""
    try:
        selector = list_options(request.query).field_selector
    except StatusError as error:
        if error.status["code"] != _UNPROCESSABLE:
            return ""
        selector = field_selector(text)  # the options can be parsed, but contradict each other
    name = selector.requires_exact_match("metadata.name") if selector is not None else None
    return name if name and not names.path_segment_name(name, False) else ""


def credentials(request: Request) -> Credentials:
    tls = request.scope.get("extensions", {}).get("tls")
    chain = tls.get("client_cert_der", ()) if tls else ()
    authorization = request.first_headers.get(b"authorization", b"").decode("utf-8", "surrogateescape")
    if chain:
        return Credentials(
            authorization, chain[0], tuple(chain[1:]), request.headers, (), request.path, request.warnings
        )
    return Credentials(authorization, b"", (), request.headers, (), request.path, request.warnings)


def selectors(request: Request) -> Selectors | None:
    """The request's selectors, for authorizers; None if it has none."""
    if not request.query or request.info.verb not in ("list", "watch", "deletecollection"):
        return None
    field_selector, label_selector = request.param("fieldSelector"), request.param("labelSelector")
    return Selectors(field_selector, label_selector) if field_selector or label_selector else None


def attributes_of(info: RequestInfo, user: UserInfo, selected: Selectors | None = None) -> Attributes:
    return Attributes(
        user,
        info.verb,
        info.path,
        info.resource_request,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        info.name,
        selected,
    )
