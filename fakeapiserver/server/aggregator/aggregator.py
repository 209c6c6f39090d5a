"""The aggregator: which requests go to other servers, and the controllers that look after those servers.

Upstream: k8s.io/kube-aggregator/pkg/apiserver/apiserver.go, pkg/controlplane/apiserver/aggregator.go.

Nothing here is imported or started before there is an APIService that names a Service.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.auth.authenticators.requestheader import REQUEST_HEADER_UID
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.server.aggregator import controllers, proxy
from fakeapiserver.server.aggregator.api_services import APIServices, RemoteService
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.metrics import UNAVAILABLE, Metrics
from fakeapiserver.server.metrics_apis.apis import MetricsAPIs
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.proxies.front_proxy import FrontProxy
from fakeapiserver.transport.round_trip import Intercept, Transport
from fakeapiserver.transport.service_resolver import cluster_resolver, endpoint_resolver, loopback_resolver

if TYPE_CHECKING:
    from fakeapiserver.server.aggregator.controllers import Controllers
    from fakeapiserver.server.aggregator.proxy import Proxy

_API_SERVICES: Final = GroupResource("apiregistration.k8s.io", "apiservices")
_LONG: Final = 3600.0


class Aggregator:
    """Aggregates other API servers.

    `own_address`: returns this server's host and port. `publish_authorities` runs next to the controllers and publishes the
    authorities that aggregated servers trust.
    """

    def __init__(
        self,
        config: Config,
        loopback: Loopback,
        *,
        front_proxy: FrontProxy,
        own_address: Callable[[], tuple[str, int]],
        metrics: Metrics,
        publish_authorities: Callable[[], Coroutine[None, None, None]],
        metrics_apis: MetricsAPIs,
    ) -> None:
        self.api_services = APIServices(loopback.objects)
        self._metrics_apis = metrics_apis
        self._config = config
        self._scopes = loopback.scopes
        self._objects = loopback.objects
        self._front_proxy = front_proxy
        self._own_address = own_address
        self._metrics = metrics
        self._publish_authorities = publish_authorities
        self._intercept: Intercept | None = None
        metrics.api_services = lambda: self.api_services.available

    def for_path(self, path: str) -> RemoteService | MetricsAPIs | None:
        """Returns the APIService whose server answers a request, or None for this server."""
        if (service := self.api_services.for_path(path)) is not None:
            return service
        if self._metrics_apis.answers(path):
            return self._metrics_apis
        if path.startswith("/openapi/v3/") and self._scopes.table.remote_openapi:
            return self._controllers.openapi.owner(path)
        return None

    async def serve(self, request: Request, service: RemoteService | MetricsAPIs) -> Response:
        if isinstance(service, MetricsAPIs):
            with self._metrics.measured(request):
                request.response = await service.answer(request)
            return request.response
        return await self._proxy.serve(request, service)

    def intercept_calls(self, intercept: Intercept | None) -> None:
        """Lets faults see the calls of aggregated servers, and finds out at once which of these are still available."""
        if intercept is None and self._intercept is None:
            return
        self._intercept = intercept
        if self.api_services.remote:
            self._proxy.transport.intercept = intercept
            self._controllers.recheck()

    async def run(self) -> None:
        """Runs until cancelled.

        The controllers start with the first remote APIService, or the change of an existing one.
        """
        store = self._scopes.store_for(_API_SERVICES)
        assert store is not None
        changed = False
        while not (changed or self.api_services.remote):
            watcher = self._scopes.storage.watch(store.prefix)
            try:
                events = await watcher.next_batch(_LONG)
                changed = any(event.type == "MODIFIED" for event in events or ())
            finally:
                watcher.close()
            await asyncio.sleep(0)  # a closed storage ends each watch at once
        try:
            await asyncio.gather(self._publish_authorities(), self._controllers.run())
        finally:
            self._proxy.transport.close()

    @cached_property
    def _proxy(self) -> "Proxy":
        resolver = endpoint_resolver if self._config.enable_aggregator_routing else cluster_resolver
        resolve = loopback_resolver(resolver(self._objects), self._own_address)
        transport = Transport(self._front_proxy.client)
        transport.intercept = self._intercept
        return proxy.Proxy(
            transport,
            resolve,
            self._config.request_timeout,
            believed=self._front_proxy.headers,
            rejects_redirects=self._config.aggregator_reject_forwarding_redirect,
            tells_uids=self._scopes.table.scheme.features.enabled(REQUEST_HEADER_UID),
        )

    @cached_property
    def _controllers(self) -> "Controllers":
        return controllers.Controllers(
            self._scopes, self._objects, self.api_services, self._proxy, self._metrics.instruments.counter(UNAVAILABLE)
        )
