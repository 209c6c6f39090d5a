"""The former states of a controller's template, as ControllerRevisions (upstream: pkg/controller/history/controller_history.go).

`data` is a patch that brings a state back: `{"spec": {"template": {"$patch": "replace", …}}}`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_invalid, is_not_found
from fakeapiserver.component_helpers.objects import CONTROLLER_REVISIONS, controller_of, key_of
from fakeapiserver.component_helpers.pods import add_controller_indexer, objects_of_owner
from fakeapiserver.component_helpers.workloads.controller_ref_manager import (
    adoption_patch,
    new_controller_ref,
    release_patch,
)
from fakeapiserver.component_helpers.workloads.pod_template import content_hash

# Label: the hash in a revision's name.
CONTROLLER_REVISION_HASH: Final = "controller.kubernetes.io/hash"
_MAX_PREFIX: Final = 223
_MAX_TRIES: Final = 5


class ControllerHistory:
    """Reads from the informer, writes to the server. StatusError, TransportError, TimeoutError as the server answers."""

    def __init__(self, client: DynamicClient, informer: SharedInformer) -> None:
        self._client = client
        self._indexer: Indexer = add_controller_indexer(informer)

    def list(self, parent: Object, kind: GroupVersionKind, selector: Selector) -> Sequence[Object]:
        """Returns the revisions that the selector matches and that `parent` or no controller owns."""
        return [
            revision
            for revision in objects_of_owner(self._indexer, parent, kind.kind, orphans=True)
            if selector.matches(revision["metadata"].get("labels") or {})
        ]

    async def create(self, parent: Object, revision: Object, collision_count: int) -> tuple[Object, int]:
        """(what is stored, the number of collisions): one with the same data may be there already; one with other data has the
        name only, and another name is taken."""
        revision = {**revision, "data": in_order(revision["data"])}
        namespace = parent["metadata"]["namespace"]
        revisions = self._client.resource(CONTROLLER_REVISIONS, namespace)
        while True:
            name = revision_name(parent["metadata"]["name"], revision_hash(revision["data"], collision_count))
            try:
                created = await revisions.create({**revision, "metadata": {**revision["metadata"], "name": name}})
            except StatusError as error:
                if not is_already_exists(error):
                    raise
                known = await revisions.get(name)
                if known.get("data") == revision["data"]:
                    return known, collision_count
                collision_count += 1
                continue
            return created, collision_count

    async def update(self, revision: Object, number: int) -> Object:
        """The revision with that number."""
        namespace = revision["metadata"]["namespace"]
        for attempt in range(_MAX_TRIES):
            if revision["revision"] == number:
                return revision
            try:
                return await self._client.resource(CONTROLLER_REVISIONS, namespace).update(
                    {**revision, "revision": number}
                )
            except StatusError as error:
                if not is_conflict(error) or attempt == _MAX_TRIES - 1:
                    raise
                revision = self._indexer.get_by_key(key_of(revision)) or revision
        return revision

    async def delete(self, revision: Object) -> None:
        metadata = revision["metadata"]
        await self._client.resource(CONTROLLER_REVISIONS, metadata["namespace"]).delete(metadata["name"])

    async def adopt(self, parent: Object, kind: GroupVersionKind, revision: Object) -> Object:
        """Makes `parent` the revision's owner. Raises ValueError if it has another one."""
        if (owner := controller_of(revision)) is not None:
            raise ValueError(f"attempt to adopt revision owned by {owner}")
        metadata = revision["metadata"]
        patch = adoption_patch(parent, kind, metadata["uid"])
        return await self._patched(metadata["namespace"], metadata["name"], patch)

    async def release(self, parent: Object, revision: Object) -> Object | None:
        """The revision without its parent; None when it is gone, or had it no more."""
        metadata = revision["metadata"]
        patch = release_patch(metadata["uid"], [parent["metadata"]["uid"]])
        try:
            return await self._patched(metadata["namespace"], metadata["name"], patch)
        except StatusError as error:
            if is_not_found(error) or is_invalid(error):
                return None
            raise

    async def _patched(self, namespace: str, name: str, patch: Object) -> Object:
        revisions = self._client.resource(CONTROLLER_REVISIONS, namespace)
        return await revisions.patch(name, patch, patch_type=STRATEGIC_MERGE_PATCH)


def in_order(value: Any) -> Any:
    """`data` with its keys sorted: a server's strategic merge patch sorts them, and `data` must not change by that."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [*map(in_order, value)] if isinstance(value, list) else value


def revision_name(prefix: str, revision: str) -> str:
    """`prefix-hash`, of a length that a name may have."""
    return f"{prefix[:_MAX_PREFIX]}-{revision}"


def revision_hash(data: Object, collision_count: int | None) -> str:
    return content_hash(data, "" if collision_count is None else str(collision_count))


def new_revision(
    parent: Object,
    kind: GroupVersionKind,
    labels: Mapping[str, str],
    data: Object,
    number: int,
    collision_count: int | None,
) -> Object:
    """A ControllerRevision that isn't written yet."""
    digest = revision_hash(data, collision_count)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(parent["metadata"]["name"], digest),
            "labels": {**labels, CONTROLLER_REVISION_HASH: digest},
            "ownerReferences": [new_controller_ref(parent, kind)],
        },
        # The server compares bytes: a strategic patch of the revision, such as the garbage collector's, writes keys in order.
        "data": msgspec.json.decode(msgspec.json.encode(data, order="sorted")),
        "revision": number,
    }


def sorted_revisions(revisions: Iterable[Object]) -> Sequence[Object]:
    """The oldest first."""
    return sorted(
        revisions,
        key=lambda revision: (
            revision["revision"],
            revision["metadata"].get("creationTimestamp", ""),
            revision["metadata"]["name"],
        ),
    )


def equal_revisions(revisions: Iterable[Object], needle: Object) -> Sequence[Object]:
    """Returns the revisions with the data of `needle`, in their order."""
    return [revision for revision in revisions if revision.get("data") == needle.get("data")]


def next_revision_number(revisions: Sequence[Object]) -> int:
    """Returns the number after the last of the ordered revisions."""
    return revisions[-1]["revision"] + 1 if revisions else 1
