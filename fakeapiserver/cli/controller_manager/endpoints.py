"""The pages of a controller manager at --secure-port: /healthz, /metrics, /configz, /flagz, /statusz and pages below /debug.

Upstream: cmd/kube-controller-manager/app/controllermanager.go, k8s.io/controller-manager/app/serve.go, pkg/healthz/handler.go.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import Authenticator, Authorizer, Decision
from fakeapiserver.controller_manager.manager import ControllerManager
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.request_info import request_info
from fakeapiserver.server import exposition
from fakeapiserver.server.filters.authentication import credentials
from fakeapiserver.server.filters.authorization import attributes_of
from fakeapiserver.server.pages import debug_pages, health, status_pages

_COMPONENT: Final = "kube-controller-manager"
_PATHS: Final = ("/configz", "/flagz", "/healthz", "/metrics")
LEADER_ELECTION: Final = "leaderElection"
_HEALTHZ: Final = "healthz"


class Endpoints(Struct):
    """Handles requests: authentication, authorization, and the page.

    flags, configuration: as /flagz and /configz show them. version: the API server's /version.
    started: the start of this process in seconds since the epoch. check_leader: raises ValueError if the process no
    longer leads; None
    without leader election.
    """

    manager: ControllerManager
    authenticator: Authenticator
    authorizer: Authorizer
    flags: Mapping[str, str]
    configuration: Mapping[str, Any]
    version: Mapping[str, str]
    started: float
    check_leader: Callable[[], None] | None
    _succeeded: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def __call__(self, request: Request) -> Response:
        request.info = request_info(request.method, request.path)
        user = await self.authenticator.authenticate(credentials(request))
        assert user is not None  # the last one is anonymous
        request.user = user
        attributes = attributes_of(request.info, user)
        decision, reason = await self.authorizer.authorize(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden_error(attributes, reason)
        return await self._page(request)

    async def _page(self, request: Request) -> Response:
        match request.path:
            case "/healthz":
                return self._healthz(request)
            case "/metrics":
                return self._metrics(request, self.manager.metrics.exposition())
            case "/metrics/slis":
                return self._metrics(request, exposition.render_health_checks(self._succeeded))
            case "/configz":
                document = {"kubecontrollermanager.config.k8s.io": self.configuration}
                return Response(200, json.encode(document))
            case "/flagz":
                return status_pages.flagz(request, self.flags, _COMPONENT)
            case "/statusz":
                now = self.manager.clock.now()
                return status_pages.statusz(
                    request, self.version, started=self.started, now=now, component=_COMPONENT, paths=_PATHS
                )
        page = await debug_pages.page(request) if request.path.startswith("/debug/") else None
        return page or respond.text(404, "404 page not found\n")

    def _healthz(self, request: Request) -> Response:
        """Reports each started controller; those that ended unexpectedly, and a leader that lost its lease, fail."""
        failing = set(self.manager.failures)
        checks = [*self.manager.started]
        if self.check_leader is not None:
            checks.insert(0, LEADER_ELECTION)
            try:
                self.check_leader()
            except ValueError:
                failing.add(LEADER_ELECTION)
        return health.aggregated(_HEALTHZ, checks or ["ping"], failing, request.query, self._succeeded)

    def _metrics(self, request: Request, body: bytes) -> Response:
        start = (b"process-start-time-unix", b"%d" % self.started)
        return Response(200, body, exposition.content_type(request.header(b"accept")), [start])
