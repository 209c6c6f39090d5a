"""The revisions of a daemon set (upstream: pkg/controller/daemon/update.go)."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_already_exists
from fakeapiserver.component_helpers.objects import CONTROLLER_REVISIONS, DAEMON_SETS, PODS, labels_of
from fakeapiserver.component_helpers.workloads.controller_ref_manager import new_controller_ref
from fakeapiserver.component_helpers.workloads.history import in_order, sorted_revisions
from fakeapiserver.component_helpers.workloads.pod_template import compute_hash
from fakeapiserver.controllers.daemonset.placement import KIND, REVISION_HASH


class StaleCollisionCount(Exception):
    """The daemon set has changed: it has to be looked at again."""


class History:
    """The revisions of one daemon set. pods: reads its own pods. Raises the server's StatusErrors."""

    def __init__(
        self, client: DynamicClient, daemon_set: Object, pods: Callable[[], Awaitable[Sequence[Object]]]
    ) -> None:
        namespace = daemon_set["metadata"]["namespace"]
        self._revisions = client.resource(CONTROLLER_REVISIONS, namespace)
        self._daemon_sets = client.resource(DAEMON_SETS, namespace)
        self._pod_client = client.resource(PODS, namespace)
        self._set = daemon_set
        self._pods = pods
        self._data = {"spec": {"template": {**daemon_set["spec"]["template"], "$patch": "replace"}}}

    async def construct(self, revisions: Iterable[Object]) -> tuple[Object, Sequence[Object]]:
        """(the revision of the set's template, the others); `revisions` are the set's. StaleCollisionCount."""
        labeled = [await self._labeled(revision) for revision in revisions]
        old = [revision for revision in labeled if revision.get("data") != self._data]
        same = [revision for revision in labeled if revision.get("data") == self._data]
        number = max((revision["revision"] for revision in old), default=0) + 1
        if not same:
            return await self._snapshot(number), old
        current = await self._only_one(same)
        if current["revision"] < number:
            await self._revisions.update({**current, "revision": number})
        return current, old

    async def _labeled(self, revision: Object) -> Object:
        if REVISION_HASH in labels_of(revision):
            return revision
        metadata = revision["metadata"]
        labels = {**labels_of(revision), REVISION_HASH: metadata["name"]}
        return await self._revisions.update({**revision, "metadata": {**metadata, "labels": labels}})

    async def _snapshot(self, number: int) -> Object:
        metadata, template = self._set["metadata"], self._set["spec"]["template"]
        collisions = self._set["status"].get("collisionCount")
        digest = compute_hash(template, collisions)
        name = f"{metadata['name']}-{digest}"
        labels = {**((template.get("metadata") or {}).get("labels") or {}), REVISION_HASH: digest}
        revision: Object = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [new_controller_ref(self._set, KIND)]},
            "data": in_order(self._data),
            "revision": number,
        }
        if annotations := metadata.get("annotations"):
            revision["metadata"]["annotations"] = annotations
        try:
            return await self._revisions.create(revision)
        except StatusError as error:
            if not is_already_exists(error):
                raise
            known = await self._revisions.get(name)
            if known.get("data") == self._data:
                return known
            await self._count_collision(collisions)
            raise

    async def _count_collision(self, expected: int | None) -> None:
        """Two templates have one hash: another name is tried next time."""
        fresh = await self._daemon_sets.get(self._set["metadata"]["name"])
        count = fresh["status"].get("collisionCount")
        if count != expected:
            name = self._set["metadata"]["name"]
            raise StaleCollisionCount(
                f'found a stale collision count ({expected}, expected {count}) of DaemonSet "{name}" while processing; '
                "will retry until it is updated"
            )
        status = {**fresh["status"], "collisionCount": (count or 0) + 1}
        await self._daemon_sets.update_status({**fresh, "status": status})

    async def _only_one(self, revisions: Sequence[Object]) -> Object:
        """Keeps the newest of several equal revisions and relabels pods with it."""
        kept = max(revisions, key=lambda revision: int(revision["revision"]))
        if len(revisions) == 1:
            return kept
        digest = labels_of(kept)[REVISION_HASH]
        for pod in await self._pods():
            if labels_of(pod).get(REVISION_HASH) != digest:
                change = {"metadata": {"labels": {REVISION_HASH: digest}}}
                await self._pod_client.patch(pod["metadata"]["name"], change)
        for revision in revisions:
            if revision is not kept:
                await self._revisions.delete(revision["metadata"]["name"])
        return kept

    async def clean_up(self, old: Sequence[Object], pods: Iterable[Object]) -> None:
        """Revisions beyond the limit that no pod is of go, the oldest first."""
        surplus = len(old) - self._set["spec"].get("revisionHistoryLimit", 10)
        if surplus <= 0:
            return
        live = {labels_of(pod).get(REVISION_HASH, "") for pod in pods}
        unused = [revision for revision in sorted_revisions(old) if labels_of(revision).get(REVISION_HASH) not in live]
        for revision in unused[:surplus]:
            await self._revisions.delete(revision["metadata"]["name"])

    async def patch(self, name: str, change: Object) -> Object:
        """For a ControllerRefManager."""
        return await self._revisions.patch(name, change, patch_type=STRATEGIC_MERGE_PATCH)
