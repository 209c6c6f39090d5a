"""Creates and deletes the pods of controllers, with an event for each (upstream: pkg/controller/controller_utils.go, RealPodControl)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.objects import PODS, is_namespace_terminating
from fakeapiserver.component_helpers.workloads.controller_ref_manager import Patch, new_controller_ref

SLOW_START_INITIAL_BATCH_SIZE: Final = 1


class DeletionFailed(Exception):
    """A pod could not be deleted."""


class PodControl:
    """StatusError, TransportError, TimeoutError as the server answers."""

    def __init__(self, client: DynamicClient, recorder: CoreEventRecorder) -> None:
        self._client = client
        self._recorder = recorder

    async def create(self, namespace: str, pod: Object, owner: Object) -> Object:
        """ValueError for a pod without labels: no selector would find it again. StatusError."""
        if not pod["metadata"].get("labels"):
            raise ValueError("unable to create pods, no labels")
        try:
            created = await self._client.resource(PODS, namespace).create(pod)
        except StatusError as error:
            if not is_namespace_terminating(error):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        name = created["metadata"]["name"]
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {name}")
        return created

    async def delete(self, namespace: str, name: str, owner: Object) -> None:
        """Deletes a pod and records an event.

        Raises StatusError (is_not_found) without an event if the pod is gone already, DeletionFailed for other errors.
        """
        try:
            await self._client.resource(PODS, namespace).delete(name)
        except StatusError as error:
            if is_not_found(error):
                raise
            self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise DeletionFailed(f"unable to delete pods: {error}") from error
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    def patcher(self, namespace: str) -> Patch:
        """For a ControllerRefManager."""
        pods = self._client.resource(PODS, namespace)

        async def patch(name: str, patch: Object) -> Object:
            return await pods.patch(name, patch, patch_type=STRATEGIC_MERGE_PATCH)

        return patch


def pod_from_template(template: Object, owner: Object, kind: GroupVersionKind) -> Object:
    """A pod that `owner` controls; its metadata is the caller's to change, its spec the template's own."""
    meta = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": pods_prefix(owner["metadata"]["name"]),
        "ownerReferences": [new_controller_ref(owner, kind)],
    }
    for field in ("labels", "annotations", "finalizers"):
        if value := meta.get(field):
            metadata[field] = value.copy()
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def pods_prefix(name: str) -> str:
    """The generateName of a controller's pods: with a dash, unless that makes it too long."""
    prefix = f"{name}-"
    return name if names.name_is_dns_subdomain(prefix, True) else prefix


async def slow_start_batch(
    count: int, initial_batch_size: int, function: Callable[[], Awaitable[object]]
) -> tuple[int, Exception | None]:
    """Calls `function` so often: 1, 2, 4, 8, … at once; after a batch in which one failed, no more.

    (how many succeeded, the first failure): what would fail all the same isn't tried a thousand times."""
    successes, remaining = 0, count
    size = min(remaining, initial_batch_size)
    while size > 0:
        results = await asyncio.gather(*(function() for _ in range(size)), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result
        failures = [result for result in results if isinstance(result, Exception)]
        successes += size - len(failures)
        if failures:
            return successes, failures[0]
        remaining -= size
        size = min(2 * size, remaining)
    return successes, None
