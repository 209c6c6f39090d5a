"""Whether an APIService's server can be reached: its condition Available.

Upstream: k8s.io/kube-aggregator/pkg/controllers/status/{local,remote}, pkg/apis/apiregistration/v1/helper/helpers.go.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.instruments import Values
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.registry.generic.write_request import WriteRequest
from fakeapiserver.server.aggregator.api_services import AVAILABLE, APIServices, RemoteService, is_available
from fakeapiserver.server.aggregator.proxy import Proxy, bundle_problem
from fakeapiserver.server.aggregator.work_queue import Retry
from fakeapiserver.transport.round_trip import TransportError
from fakeapiserver.transport.service_resolver import is_ready, slices_of

# How often a server is asked whether it is still there, when nothing else gives a reason to.
RESYNC: Final = 30.0
_TIMEOUT: Final = 5.0
# An address may lead to several servers: one that answers will do.
_ATTEMPTS: Final = 5
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))
# The user of the check, which always has access.
_CHECKER: Final = UserInfo("system:kube-aggregator", groups=("system:masters",))


class Condition(NamedTuple):
    status: str
    reason: str
    message: str


LOCAL: Final = Condition("True", "Local", "Local APIServices are always available")
_PASSED: Final = Condition("True", "Passed", "all checks passed")


class Availability:
    """`scope` is the APIServices' own; `unavailable` counts what has become so, by name and reason."""

    def __init__(
        self,
        scope: RequestScope,
        objects: ObjectGetter,
        services: APIServices,
        proxy: Proxy,
        unavailable: Counter[Values],
    ) -> None:
        self._scope = scope
        self._objects = objects
        self._services = services
        self._proxy = proxy
        self._unavailable = unavailable

    async def sync(self, name: str) -> float | None:
        """Retry when the server doesn't answer as it should."""
        service = self._services.remote.get(name)
        if service is None:
            await self._tell(name, LOCAL)
            return None
        condition = self._unreachable(service) or await self._discovery(service)
        await self._tell(name, condition)
        if condition.reason == "FailedDiscoveryCheck":
            raise Retry(condition.message)
        return RESYNC

    def _unreachable(self, service: RemoteService) -> Condition | None:
        """Returns the condition that follows from the stored Service and its endpoints, or None."""
        namespace, name, port = service.service.namespace, service.service.name, service.service.port
        place = f"service/{name} in {go_quote(namespace)}"
        service_object = self._objects.get("services", namespace, name)
        if service_object is None:
            return Condition("False", "ServiceNotFound", f"{place} is not present")
        if service_object["spec"].get("type") != "ClusterIP":
            return None
        served = next((item for item in service_object["spec"].get("ports") or () if item.get("port") == port), None)
        if served is None:
            return Condition("False", "ServicePortError", f"{place} is not listening on port {port}")
        slices = list(slices_of(self._objects, namespace, name))
        if not slices:
            return Condition("False", "EndpointsNotFound", f"cannot find endpointslices for {place}")
        port_name = served.get("name", "")
        if not any(_has_endpoint(item, port_name) for item in slices):
            message = f"endpointslices for {place} have no addresses with port name {go_quote(port_name)}"
            return Condition("False", "MissingEndpoints", message)
        return None

    async def _discovery(self, service: RemoteService) -> Condition:
        """Requests the group version's document, several times at once; the first success counts.

        Raises Retry if no request can be made.
        """
        if problem := bundle_problem(service):
            raise Retry(problem)
        attempts = [asyncio.ensure_future(self._attempt(service)) for _ in range(_ATTEMPTS)]
        message = ""
        try:
            for attempt in asyncio.as_completed(attempts):
                message = await attempt
                if not message:
                    return _PASSED
        finally:
            for task in attempts:
                task.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)
        return Condition("False", "FailedDiscoveryCheck", message)

    async def _attempt(self, service: RemoteService) -> str:
        """Returns the error of one request, or ""."""
        path = f"/api/{service.gv.version}" if service.path == "/api" else service.path
        try:
            url = f"https://{self._proxy.target(service).authority}{path}"
        except LookupError as error:
            return str(error.args[0])
        agent = (b"User-Agent", b"Go-http-client/1.1")
        try:
            answer, _ = await self._proxy.fetch(service, path, _CHECKER, [agent], _TIMEOUT)
        except TransportError as error:
            return f'failing or missing response from {url}: Get "{url}": {error}'
        if not 200 <= answer.status < 300:
            return f"failing or missing response from {url}: bad status from {url}: {answer.status}"
        return ""

    async def _tell(self, name: str, condition: Condition) -> None:
        """Writes the condition, if that makes a difference."""
        scope = self._scope
        assert scope.store is not None
        now = rfc3339(scope.clock.now())

        def transform(current: Object | None) -> Object:
            assert current is not None
            return with_condition(current, condition, now)

        stored = scope.store.storage.get_now(scope.store.key("", name))
        if stored is None:
            return
        obj = scope.store.decode(stored.value)
        if transform(obj) == obj:
            return
        request = WriteRequest(
            kind=scope.kind, user=_SERVER, manager="kube-apiserver", namespace="", name=name, subresource="status"
        )
        try:
            await scope.store.write(request, transform)
        except StatusError as error:
            raise Retry(str(error)) from None
        if is_available(obj) and condition.status != "True":
            self._unavailable[name, condition.reason] += 1


def with_condition(obj: Mapping[str, Any], condition: Condition, now: str) -> Object:
    """The object with the condition Available; since when it holds changes with its status only."""
    status = dict(obj.get("status") or {})
    conditions = [dict(item) for item in status.get("conditions") or ()]
    known = next((item for item in conditions if item.get("type") == AVAILABLE), None)
    if known is None:
        known = {"type": AVAILABLE, "status": "", "lastTransitionTime": now}
        conditions.append(known)
    elif known.get("status") != condition.status:
        known["lastTransitionTime"] = now
    known.update(status=condition.status, reason=condition.reason, message=condition.message)
    return {**obj, "status": {**status, "conditions": conditions}}


def _has_endpoint(endpoint_slice: Mapping[str, Any], port_name: str) -> bool:
    """A ready endpoint, and the port's number."""
    ready = any(is_ready(endpoint) for endpoint in endpoint_slice.get("endpoints") or ())
    ports = endpoint_slice.get("ports") or ()
    return ready and any(port.get("name") == port_name and port.get("port") is not None for port in ports)
