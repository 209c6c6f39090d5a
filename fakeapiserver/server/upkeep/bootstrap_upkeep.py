"""Restores objects that a server must have: system namespaces, the service `kubernetes` and the range of its address, flow
schemas and priority levels.

Upstream: pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr},
pkg/registry/flowcontrol/rest/storage_flowcontrol.go and pkg/registry/flowcontrol/ensurer/strategy.go. Each of these
checks from time to time; here the checks happen at the same times, but only after one of these objects was written.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.clock import Timers, sleep
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.registry.generic.write_request import WriteRequest, posted
from fakeapiserver.server.upkeep.status_writer import SERVER, apply_status
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event

log = logging.getLogger(__name__)

NAMESPACES: Final = GroupResource("", "namespaces")
SERVICES: Final = GroupResource("", "services")
SERVICE_CIDRS: Final = GroupResource("networking.k8s.io", "servicecidrs")
FLOW_SCHEMAS: Final = GroupResource("flowcontrol.apiserver.k8s.io", "flowschemas")
PRIORITY_LEVELS: Final = GroupResource("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
_PRODUCER: Final = "api-priority-and-fairness-config-producer-v1"
_SERVER: Final = "kube-apiserver"
_SERVICE_CIDR_CONTROLLER: Final = "kubernetes-service-cidr-controller"
_READY: Final = "Kubernetes default Service CIDR is ready"
# "true": the server keeps the spec as it is upstream, and removes an object that upstream hasn't.
_AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
_MANDATORY: Final = ("exempt", "catch-all")
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class _Upkeep(Struct, frozen=True):
    """A check every `period` seconds, if there was an event of the resource that `touches` accepts."""

    resource: GroupResource
    period: float
    touches: Callable[[Event], bool]
    ensure: Callable[[], Awaitable[None]]


class BootstrapUpkeep:
    """Restores default objects. objects: returns fresh copies of them."""

    def __init__(self, scopes: RequestScopes, objects: Callable[[], Iterable[Object]], clock: Timers) -> None:
        self._scopes = scopes
        self._objects = objects
        self._clock = clock
        self._began = clock.monotonic()

    async def run(self) -> None:
        """Runs until cancelled."""
        kept = (
            _Upkeep(NAMESPACES, 60.0, lambda event: event.type == "DELETED", self._ensure_namespaces),
            _Upkeep(SERVICES, 10.0, _is_own_service, self._ensure_service),
            _Upkeep(
                SERVICE_CIDRS, 10.0, lambda event: event.object.key.endswith("/kubernetes"), self._ensure_service_cidr
            ),
            _Upkeep(FLOW_SCHEMAS, 60.0, lambda event: True, self._ensure_priority_and_fairness),
            _Upkeep(PRIORITY_LEVELS, 60.0, lambda event: True, self._ensure_priority_and_fairness),
        )
        await asyncio.gather(*(self._look_after(one) for one in kept))

    async def _look_after(self, kept: _Upkeep) -> None:
        store = self._scopes.store_for(kept.resource)
        if store is None:
            return
        fresh = True

        async def began() -> None:
            nonlocal fresh
            if not fresh:  # a restored state may lack what a fresh server has
                await self._ensure(kept)
            fresh = False

        async def changed(events: Sequence[Event]) -> None:
            if any(map(kept.touches, events)):
                await self._ensure(kept)

        await follow(store, began, changed)

    async def _ensure(self, kept: _Upkeep) -> None:
        """At the next of the times at which upstream looks."""
        await sleep(self._clock, kept.period - (self._clock.monotonic() - self._began) % kept.period)
        try:
            await kept.ensure()
        except StatusError as error:  # the next event brings the next try
            log.warning("%s: could not be brought back: %s", kept.resource, error)

    # ------------------------------------------------------------------- what is ensured

    async def _ensure_namespaces(self) -> None:
        for obj in self._wanted(NAMESPACES).values():
            await self._ensure_present(NAMESPACES, obj, _SERVER)

    async def _ensure_service(self) -> None:
        for obj in self._wanted(SERVICES).values():
            await self._ensure_present(SERVICES, obj, _SERVER)

    def warn_of_another_range(self) -> None:
        """Logs upstream's warning if the stored default ServiceCIDR isn't that of --service-cluster-ip-range, which then has no effect."""
        for name, obj in self._wanted(SERVICE_CIDRS).items():
            _, store = self._found(SERVICE_CIDRS)
            stored = store.storage.get_now(store.key("", name))
            cidrs = obj["spec"]["cidrs"] if stored is None else store.decode(stored.value)["spec"]["cidrs"]
            if cidrs != obj["spec"]["cidrs"]:
                there, here = ",".join(cidrs), ",".join(obj["spec"]["cidrs"])
                log.warning(
                    "The default ServiceCIDR [%s] does not match the controller flag configurations [%s]: "
                    "--service-cluster-ip-range has no effect",
                    there,
                    here,
                )

    async def _ensure_service_cidr(self) -> None:
        """Restores the default ServiceCIDR; it is ready unless its status says otherwise."""
        for name, obj in self._wanted(SERVICE_CIDRS).items():
            await self._ensure_present(SERVICE_CIDRS, obj, _SERVER)
            scope, store = self._found(SERVICE_CIDRS)
            stored = store.storage.get_now(store.key("", name))
            current = store.decode(stored.value) if stored is not None else obj
            ready = [row for row in (current.get("status") or {}).get("conditions") or () if row["type"] == "Ready"]
            known = bool(ready) and ready[0]["status"] != "Unknown"
            if known or is_terminating(current) or current["spec"]["cidrs"] != obj["spec"]["cidrs"]:
                continue
            condition = {"type": "Ready", "status": "True", "message": _READY, "reason": ""}
            condition["lastTransitionTime"] = rfc3339(self._scopes.clock.now())
            await apply_status(scope, name, {"conditions": [condition]}, user=SERVER, manager=_SERVICE_CIDR_CONTROLLER)

    async def _ensure_priority_and_fairness(self) -> None:
        """Restores suggested objects before mandatory ones, whose spec is fixed; objects of earlier versions are
        removed.
        """
        for mandatory in (False, True):
            for resource in (PRIORITY_LEVELS, FLOW_SCHEMAS):
                for name, obj in self._wanted(resource).items():
                    if (name in _MANDATORY) is mandatory and not await self._ensure_present(resource, obj, _PRODUCER):
                        await self._revise(resource, obj, mandatory=mandatory)
        for resource in (FLOW_SCHEMAS, PRIORITY_LEVELS):
            await self._remove_others(resource, self._wanted(resource))

    async def _ensure_present(self, resource: GroupResource, wanted: Object, manager: str) -> bool:
        """Reports whether it was missing."""
        scope, store = self._found(resource)
        namespace, name = metadata(wanted).get("namespace", ""), metadata(wanted)["name"]
        if store.storage.get_now(store.key(namespace, name)) is not None:
            return False
        await store.write(WriteRequest(scope.kind, SERVER, manager, namespace), posted(_new(wanted)), create=True)
        return True

    async def _revise(self, resource: GroupResource, wanted: Object, *, mandatory: bool) -> None:
        scope, store = self._found(resource)
        name = metadata(wanted)["name"]
        stored = store.storage.get_now(store.key("", name))
        if stored is None:
            return
        current = store.decode(stored.value)
        updates = mandatory or _updates_spec(current)
        spec = _kept_spec(wanted, current) if updates else current["spec"]
        annotation = _flag(current)
        if spec == current["spec"] and annotation is updates:
            return

        def revised(stored_object: Object | None) -> Object:
            assert stored_object is not None
            meta = metadata(stored_object)
            if annotation is not updates:
                shown = "true" if updates else "false"
                meta = {**meta, "annotations": {**(meta.get("annotations") or {}), _AUTO_UPDATE: shown}}
            return {**stored_object, "metadata": meta, "spec": spec}

        await store.write(WriteRequest(scope.kind, SERVER, _PRODUCER, "", name), revised)

    async def _remove_others(self, resource: GroupResource, wanted: Collection[str]) -> None:
        _, store = self._found(resource)
        for item in store.storage.list_now(store.prefix).items:
            obj = store.decode(item.value)
            if metadata(obj)["name"] not in wanted and _flag(obj):
                await store.deleter.remove("", metadata(obj)["name"], Deletion())

    def _found(self, resource: GroupResource) -> tuple[RequestScope, Store]:
        store = self._scopes.store_for(resource)
        assert store is not None
        scope = self._scopes.lookup(resource.group, store.gvr.version, resource.resource)
        assert scope is not None
        return scope, store

    def _wanted(self, resource: GroupResource) -> Mapping[str, Object]:
        return self._all.get(resource, {})

    @cached_property
    def _all(self) -> Mapping[GroupResource, Mapping[str, Object]]:
        """By resource and name; read when it is first needed."""
        kinds = {
            self._found(resource)[1].kind: resource
            for resource in (NAMESPACES, SERVICES, SERVICE_CIDRS, FLOW_SCHEMAS, PRIORITY_LEVELS)
            if self._scopes.store_for(resource) is not None
        }
        of_kind = {(str(kind.group), kind.kind): resource for kind, resource in kinds.items()}
        objects: dict[GroupResource, dict[str, Object]] = {}
        for obj in self._objects():
            group = obj["apiVersion"].rpartition("/")[0]
            resource = of_kind.get((group, obj["kind"]))
            if resource is not None:
                objects.setdefault(resource, {})[metadata(obj)["name"]] = obj
        return objects


def _is_own_service(event: Event) -> bool:
    return event.type == "DELETED" and event.object.key.endswith("/default/kubernetes")


def _new(wanted: Object) -> Object:
    """Returns the object as a client would send it; the spec is a copy."""
    meta = {name: value for name, value in metadata(wanted).items() if name not in ("managedFields", "generation")}
    return {**wanted, "metadata": meta, "spec": {**wanted["spec"]}, "status": {}}


def _kept_spec(wanted: Object, current: Object) -> Object:
    """Returns upstream's spec, except for the share of the level `exempt`, which the operator sets."""
    spec: Object = wanted["spec"]
    if "exempt" in spec and current["spec"].get("exempt"):
        return {**spec, "exempt": current["spec"]["exempt"]}
    return spec


def _updates_spec(obj: Object) -> bool:
    """Reports whether a suggested object keeps upstream's spec: by its annotation, or as long as its spec was never changed."""
    flag = _flag(obj)
    return metadata(obj).get("generation") == 1 if flag is None else flag


def _flag(obj: Object) -> bool | None:
    """Returns the annotation's value, or None if it is no boolean."""
    text = (metadata(obj).get("annotations") or {}).get(_AUTO_UPDATE)
    return _BOOLEANS.get(text) if isinstance(text, str) else None
