"""A controller that looks at its objects before its own last writes have come back would do things twice.

Upstream: pkg/controller/util/consistency. There, such a look is an error and tried again; here it is left out, as the write comes back
as an event, which asks for another look.
"""

from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import meta_namespace_key
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.controller_runtime.reconcile import Request, Result

# The answer to a request that comes too early. Should an event have been missed, it is looked at after so many seconds all the same.
NOT_READY: Final = Result(requeue_after=30.0)


class ConsistencyStore:
    """Remembers the revision of each write of a reconciler until the informer has seen it."""

    def __init__(self) -> None:
        self._writes: dict[Request, dict[tuple[SharedInformer, str], int]] = {}

    def wrote_at(self, owner: Request, informer: SharedInformer, written: Object) -> None:
        """`written` is what the server answered; events of the informer have to bring the request back."""
        key = (informer, meta_namespace_key(written))
        self._writes.setdefault(owner, {})[key] = int(written["metadata"]["resourceVersion"])

    def clear(self, owner: Request) -> None:
        """Forgets the writes of an owner that is gone."""
        self._writes.pop(owner, None)

    def is_ready(self, owner: Request) -> bool:
        """Everything that was written has come back."""
        writes = self._writes.get(owner)
        if writes is None:
            return True
        if all(_has(informer, key, version) for (informer, key), version in writes.items()):
            del self._writes[owner]
            return True
        return False


def _has(informer: SharedInformer, key: str, version: int) -> bool:
    """The object at that version, or a later one; or it is gone again by now."""
    obj = informer.indexer.get_by_key(key)
    if obj is not None:
        return int(obj["metadata"]["resourceVersion"]) >= version
    return int(informer.last_sync_resource_version or 0) >= version
