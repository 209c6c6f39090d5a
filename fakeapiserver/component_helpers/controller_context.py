"""The dependencies of every controller (upstream: cmd/kube-controller-manager/app/controllermanager.go, ControllerContext)."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client.cache.shared_informer import SharedInformer, SharedInformerFactory
from fakeapiserver.client.causes import WorkObserver
from fakeapiserver.client.core_events import CoreEventBroadcaster, CoreEventRecorder
from fakeapiserver.client.discovery import DiscoveryClient
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest_mapper import RESTMapper
from fakeapiserver.client.workqueue import RateLimiter
from fakeapiserver.clock import Timers
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.controller_runtime.controller import Controller, ControllerOptions
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.metrics import Metrics
from fakeapiserver.controller_runtime.reconcile import Reconciler, Request, Result, TerminalError
from fakeapiserver.transport.key_pair import KeyPair

# The one request of a controller that has no objects of its own but looks at everything now and then.
EVERYTHING: Final = Request("", "")
_FOREVER: Final = 1e7  # seconds


class Signing(Struct, frozen=True):
    """Keys for signing.

    sign_token: makes a JSON web token of claims; None: there is no key for it.
    authorities: the certificate authorities by signer name.
    """

    sign_token: Callable[[Mapping[str, Any]], str] | None = None
    authorities: Mapping[str, KeyPair] = field(default_factory=dict)


class Shared(Struct):
    """The dependencies that all controllers of a manager share."""

    informers: SharedInformerFactory
    metadata_informers: SharedInformerFactory
    discovery: DiscoveryClient
    mapper: RESTMapper
    metrics: Metrics
    clock: Timers
    configuration: KubeControllerManagerConfiguration
    root_ca: bytes = b""
    signing: Signing = field(default_factory=Signing)
    random: Random = field(default_factory=Random)
    observer: WorkObserver | None = None


class ControllerContext:
    """The dependencies of one controller.

    client: sends requests in this controller's name. Controllers take the time from `clock` and chance from `random`.
    """

    def __init__(
        self,
        name: str,
        shared: Shared,
        client: DynamicClient,
        events: CoreEventBroadcaster,
        client_of: Callable[[str], DynamicClient],
    ) -> None:
        self.name = name
        self.client = client
        # Asks in the name of a user, `system:node:node-1` say.
        self.client_of = client_of
        self.shared = shared
        self._events = events
        # Informer -> whether it is needed.
        self._used: dict[SharedInformer, bool] = {}

    @property
    def clock(self) -> Timers:
        return self.shared.clock

    @property
    def configuration(self) -> KubeControllerManagerConfiguration:
        return self.shared.configuration

    @property
    def discovery(self) -> DiscoveryClient:
        return self.shared.discovery

    @property
    def mapper(self) -> RESTMapper:
        return self.shared.mapper

    @property
    def root_ca(self) -> bytes:
        """PEM of the authorities that pods trust; empty if none are configured."""
        return self.shared.root_ca

    @property
    def signing(self) -> Signing:
        return self.shared.signing

    @property
    def metrics(self) -> Metrics:
        """The metrics that /metrics of the manager shows, under upstream's names."""
        return self.shared.metrics

    @property
    def random(self) -> Random:
        return self.shared.random

    def informer(
        self,
        resource: GroupVersionResource,
        *,
        metadata_only: bool = False,
        optional: bool = False,
        object_name: str = "",
    ) -> SharedInformer:
        """Returns the resource's informer, which all controllers share; it has its first list before this controller's workers begin.

        Its objects must not be changed. `metadata_only`: PartialObjectMetadata. `optional`: the informer stays empty if the server is
        too old to have the resource. `object_name`: only objects with this name.
        """
        factory = self.shared.metadata_informers if metadata_only else self.shared.informers
        informer = factory.for_resource(resource, object_name=object_name)
        self._used[informer] = not optional or self._used.get(informer, False)
        return informer

    def running_informer(self, resource: GroupVersionResource, *, whole: bool = False) -> SharedInformer:
        """Returns the running informer of a resource that is discovered while controllers run; `release` the resource when it is gone.

        The informer may not have its first list yet. It has metadata only, unless `whole`, or another controller reads whole objects.
        """
        whole = whole or resource in self.shared.informers
        factory = self.shared.informers if whole else self.shared.metadata_informers
        informer = factory.for_resource(resource, keep=False)
        factory.start()
        informer.retry()
        return informer

    def release(self, resource: GroupVersionResource) -> None:
        """The resource isn't served any more, and this controller has no handlers left at its `running_informer`."""
        self.shared.metadata_informers.stop_unused(resource)
        self.shared.informers.stop_unused(resource)

    @property
    def lacks(self) -> bool:
        """Something that it needs isn't served, so it doesn't begin."""
        return any(needed and informer.unserved and not informer.has_synced for informer, needed in self._used.items())

    def recorder(self, component: str, host: str = "") -> CoreEventRecorder:
        """Returns a recorder of events as `component`, on the node `host` if the component runs on several."""
        return self._events.new_recorder(component, host)

    def controller(
        self,
        reconciler: Reconciler,
        *,
        workers: int = 1,
        name: str = "",
        rate_limiter: RateLimiter | None = None,
        max_retries: int | None = None,
    ) -> Controller:
        """A queue of requests and its workers. `name`: of the queue, where a controller has several; by default its own.
        `max_retries`: a request that failed so often in a row is given up until something changes; None: never."""
        options = ControllerOptions(
            max_concurrent_reconciles=workers,
            rate_limiter=rate_limiter,
            cache_sync_timeout=_FOREVER,
            use_priority_queue=False,
        )
        limited = reconciler if max_retries is None else _Limited(reconciler, max_retries)
        shared = self.shared
        controller = Controller(
            name or self.name,
            limited,
            metrics=shared.metrics,
            options=options,
            clock=shared.clock,
            observer=shared.observer,
        )
        if isinstance(limited, _Limited):
            limited.queue = controller.queue
        return controller

    async def wait_for_sync(self) -> None:
        """Waits until every informer that was asked for has its first list."""
        for informer, needed in [*self._used.items()]:
            await (informer.wait_for_sync() if needed else informer.wait_for_answer())


class _Limited:
    """Gives up requests that failed too often."""

    queue: Queue

    def __init__(self, reconciler: Reconciler, max_retries: int) -> None:
        self._reconciler = reconciler
        self._max_retries = max_retries

    async def reconcile(self, request: Request) -> Result | None:
        try:
            return await self._reconciler.reconcile(request)
        except Exception as error:
            if self.queue.num_requeues(request) < self._max_retries:
                raise
            self.queue.forget(request)
            raise TerminalError(f"given up after {self._max_retries} retries: {error}") from error


class Periodic(Struct):
    """A Source of EVERYTHING, when the controller starts; the reconciler's `requeue_after` is the period."""

    first: Callable[[], float] = lambda: 0.0

    async def start(self, queue: Queue) -> None:
        queue.add_after(EVERYTHING, self.first())

    async def wait_for_sync(self) -> None:
        """Returns at once: nothing exists in the beginning."""

    def stop(self) -> None:
        """Does nothing: the source has no more events."""
