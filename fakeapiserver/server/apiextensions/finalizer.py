"""Deletes the instances of a definition that is being deleted, and then lets it go.

Upstream: k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.apiextensions.customresourcedefinition import FINALIZER, condition, set_condition
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.registry.generic.write_request import WriteRequest
from fakeapiserver.server.apiextensions.serving import ServedResources
from fakeapiserver.server.apiextensions.status import DefinitionStatus
from fakeapiserver.storage.interface import ListQuery

log = logging.getLogger(__name__)

_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


class Finalizer:
    """Finalizes definitions, each in a task of its own while its instances have finalizers."""

    def __init__(self, served: ServedResources, status: DefinitionStatus) -> None:
        self._served = served
        self._status = status
        # Definitions that wait for their last instances.
        self._ending: dict[str, asyncio.Task[None]] = {}

    async def finalize(self, obj: Object) -> None:
        """Deletes the instances, then lets the definition go."""
        name = metadata(obj)["name"]
        if name in self._ending:
            return

        def begin(new: Object, now: float) -> None:
            message = "CustomResource deletion is in progress"
            set_condition(new, "Terminating", "True", "InstanceDeletionInProgress", message, now)

        obj = await self._status.write(obj, begin)
        if condition(obj, "Established") != "True":
            await self._let_go(obj, "NeverEstablished", "resource was never established")
            return
        kind, store = self._served.kind_of(name), self._served.plain_store(obj)
        if kind is not None and await self._delete_instances(store, kind):
            # Some have finalizers of their own.
            task = asyncio.create_task(self._wait_and_let_go(obj, store))
            self._ending[name] = task
            task.add_done_callback(lambda _: self._ending.pop(name, None))
            return
        await self._let_go(obj, "InstanceDeletionCompleted", "removed all instances")

    async def _delete_instances(self, store: Store, kind: CustomKind) -> bool:
        """Deletes the instances, and returns whether any are left."""
        for item in (await store.storage.list(store.prefix)).items:
            namespace, _, instance = item.key.removeprefix(store.prefix).rpartition("/")
            request = WriteRequest(
                kind=kind, user=_SERVER, manager="kube-apiserver", namespace=namespace, name=instance
            )
            with suppress(StatusError):
                await store.deleter.delete(request, Deletion())
        return bool((await store.storage.list(store.prefix, ListQuery(limit=1))).items)

    async def _wait_and_let_go(self, obj: Object, store: Store) -> None:
        watcher = store.storage.watch(store.prefix, revision=None, predicate=None)
        try:
            while (await store.storage.list(store.prefix, ListQuery(limit=1))).items:
                if await watcher.next_batch(3600.0) is None:
                    return  # another state was restored
            await self._let_go(obj, "InstanceDeletionCompleted", "removed all instances")
        except StatusError as error:
            log.info("definition %s has moved on: %s", metadata(obj)["name"], error)
        finally:
            watcher.close()

    async def _let_go(self, obj: Object, reason: str, message: str) -> None:
        def end(new: Object, now: float) -> None:
            meta = new["metadata"]
            meta["finalizers"] = [finalizer for finalizer in meta.get("finalizers", ()) if finalizer != FINALIZER]
            set_condition(new, "Terminating", "False", reason, message, now)

        await self._status.write(obj, end)
