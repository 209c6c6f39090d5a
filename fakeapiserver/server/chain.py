"""The handler chain: the filters that every request passes before its own handler, in their order.

Upstream: k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain).
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fakeapiserver.auth.interfaces import Authenticator, Authorizer, UserInfo
from fakeapiserver.endpoints.dispatch import dispatch
from fakeapiserver.endpoints.negotiation.media_types import SUPPORTED
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.streams import websocket
from fakeapiserver.evidence.request_log import RequestLogging
from fakeapiserver.server.aggregator.aggregator import Aggregator
from fakeapiserver.server.filters import impersonation
from fakeapiserver.server.filters.audit.interface import Auditing
from fakeapiserver.server.filters.authentication import authenticate
from fakeapiserver.server.filters.authorization import attributes_of, authorize
from fakeapiserver.server.filters.deadline import deadline
from fakeapiserver.server.filters.fault_injection import FaultInjection
from fakeapiserver.server.filters.flowcontrol.limits import Limiter
from fakeapiserver.server.filters.request_info import request_info_of
from fakeapiserver.server.metrics import Metrics
from fakeapiserver.server.pages.fixed_paths import FixedPaths

if TYPE_CHECKING:
    from fakeapiserver.server.filters.impersonation import Impersonation

# Authorizers see these as paths of the core group, but they aren't served.
_NO_GROUP: Final = ("//", "/apis//")
_WRITES: Final = frozenset(("create", "update", "patch", "delete", "deletecollection"))


class HandlerChain(Struct):
    """Calling it answers a request. Raises StatusError 401, 403, 404, 405 and what a handler raises, EvaluationError if no
    authorizer could decide, and Answered with a response that isn't a Status (429, 504, some 404 and 500). `media_types` are those of
    documents and of errors that no handler answers.
    """

    authenticator: Authenticator
    authorizer: Authorizer
    scopes: RequestScopes
    fixed_paths: FixedPaths
    metrics: Metrics
    limiter: Limiter
    request_timeout: float
    aggregator: Aggregator
    auditing: Auditing
    request_logging: RequestLogging
    faults: FaultInjection
    compresses: bool = True
    media_types: tuple[str, ...] = SUPPORTED
    _impersonation: "Impersonation | None" = None

    async def __call__(self, request: Request) -> Response:
        request.supported = request.general = self.media_types
        with self.request_logging.entry(request):
            request.info = await request_info_of(request)
            async with self.auditing.failure(request), deadline(request, self.request_timeout):
                request.user = await authenticate(request, self.authenticator, self.metrics.authentication)
                async with self.auditing.events(request):
                    if _impersonates(request):
                        request.user = await self._impersonate(request)
                    with await self.limiter.seat(request):
                        await authorize(request, self.authorizer, self.metrics.authorization)
                        if self.faults.active:
                            await self.faults.before(request)
                        if (service := self.aggregator.for_path(request.path)) is not None:
                            request.response = await self.aggregator.serve(request, service)
                        else:
                            with self.metrics.measured(request):
                                request.response = await self._handler(request)
                                if request.info.verb in _WRITES:
                                    # Watchers, which the write has woken, run first: a controller that sees its own writes
                                    # late works on old states.
                                    await asyncio.sleep(0)
                            if request.response.stream is not None and request.header(b"upgrade"):
                                request.response = await _over_websocket(request, request.response)
                        if request.injection is not None:
                            request.response = self.faults.after(request, request.response)
                        return request.response

    def _handler(self, request: Request) -> Awaitable[Response]:
        """Returns the answer to be awaited, so that this function isn't on the stack while it is made."""
        request.compresses = self.compresses
        if not request.info.resource_request or request.path.startswith(_NO_GROUP):
            return self.fixed_paths.answer(request)
        return dispatch(request, self.scopes)

    async def _impersonate(self, request: Request) -> UserInfo:
        if self._impersonation is None:
            constrained = self.scopes.table.scheme.features.enabled("ConstrainedImpersonation")
            self._impersonation = impersonation.Impersonation(
                self.authorizer, self.metrics.instruments, constrained=constrained
            )
        return await self._impersonation.user(request, attributes_of(request.info, request.user))


def _impersonates(request: Request) -> bool:
    """Reports whether a header asks for impersonation. One search for all names, since every request comes through here."""
    return b"\nimpersonate-" in b"\n".join((b"", *request.first_headers))


async def _over_websocket(request: Request, response: Response) -> Response:
    """Returns a stream's events as messages if the client speaks WebSockets, else the response itself."""
    if websocket.is_websocket_request(request):
        return await websocket.streamed(request, response)
    return response
