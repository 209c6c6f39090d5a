"""What a backend offers: one global revision, compare-and-swap, lists at a revision, watches from one.

Upstream: k8s.io/apiserver/pkg/storage/interfaces.go, errors.go. testing/storage_suite.py holds the tests that any backend must pass.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol

from msgspec import Struct, field


class StorageError(Exception):
    """Anything a backend refuses; the store above turns it into a metav1.Status."""


class KeyNotFound(StorageError):
    def __init__(self, key: str) -> None:
        super().__init__(f"key not found: {key}")
        self.key = key


class KeyExists(StorageError):
    def __init__(self, key: str) -> None:
        super().__init__(f"key exists: {key}")
        self.key = key


class ResourceVersionConflict(StorageError):
    """A compare-and-swap lost; `current` is what is stored now."""

    def __init__(self, current: "StoredObject") -> None:
        super().__init__(f"{current.key} is at revision {current.mod_revision}")
        self.current = current


class RequestTooLarge(StorageError):
    """The backend takes no object of this size; its text is what clients get to read."""


class Compacted(StorageError):
    """The revision asked for is no longer known; `oldest` is the oldest that is."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest known revision is {oldest}")
        self.oldest = oldest


class ResourceVersionTooLarge(StorageError):
    """The revision asked for is not there yet; `current` is the newest."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current


class Index(Struct, frozen=True):
    """What selectors read, kept beside the bytes so that nobody decodes them for it. `version` is the one
    that the object is stored in."""

    labels: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    version: str = ""


class StoredObject(Struct, frozen=True):
    """One version of one object. `value` is canonical JSON with its resourceVersion; nobody changes any of it."""

    key: str
    value: bytes
    mod_revision: int
    create_revision: int
    index: Index


class ListResult(Struct, frozen=True):
    """`items` in the order of their keys. `more`: the limit cut the list, and keys follow, selected or not; `remaining`
    says how many there are beyond the limit (a predicate doesn't count). `revision` is the state the list shows."""

    items: list[StoredObject]
    revision: int
    remaining: int = 0
    more: bool = False


EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Predicate = Callable[[StoredObject], bool]


class Event(Struct):
    """One change as one watcher sees it. `object` is the new state; for DELETED the last one, stamped with the deletion's
    revision. `frames` keeps encodings, shared by all watchers that see the same event."""

    type: EventType
    object: StoredObject
    previous: StoredObject | None
    revision: int
    frames: dict[str, bytes] = field(default_factory=dict)


class Watcher(Protocol):
    @property
    def progress(self) -> int:
        """The watcher has handed out everything up to this revision (what a bookmark may say)."""

    async def next_batch(self, timeout: float) -> list[Event] | None:
        """The events since the last call, in order; waits `timeout` seconds at most, and answers [] when none came.
        None: it has ended (closed, or fallen too far behind) and the client must start anew."""

    def end(self) -> None:
        """What is buffered is still handed out, then None."""

    def close(self) -> None:
        """Ends it at once; calling again does nothing."""


class Storage(Protocol):
    """Keys look like `/registry/pods/default/web`; a prefix ends with a slash. Callers hand in values without a
    resourceVersion: the backend puts `"resourceVersion":"N",` at `offset` when the revision is known."""

    @property
    def revision(self) -> int:
        """The newest revision; starts at 1, rises by one with each write."""

    def generation(self, prefix: str) -> int:
        """The revision of the newest write below a resource's prefix: cheap to ask, for caches."""

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        """KeyExists, RequestTooLarge."""

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        """KeyNotFound, RequestTooLarge; ResourceVersionConflict unless the object is still at `expected_revision`."""

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        """The last state, stamped with the deletion's revision. KeyNotFound, ResourceVersionConflict."""

    async def get(self, key: str, *, minimum_revision: int = 0) -> StoredObject | None:
        """ResourceVersionTooLarge when `minimum_revision` is not there yet."""

    async def get_for_update(self, key: str) -> StoredObject | None:
        """What an update starts from."""

    async def list(
        self,
        prefix: str,
        *,
        revision: int = 0,
        start: str = "",
        limit: int = 0,
        predicate: Predicate | None = None,
    ) -> ListResult:
        """At `revision` (0: now), keys from `start` on, at most `limit` of those selected (0: all).
        Compacted, ResourceVersionTooLarge."""

    def watch(self, prefix: str, *, revision: int | None = None, predicate: Predicate | None = None) -> Watcher:
        """Every event after `revision` (None: from now on) without loss, repeat or reorder. Compacted at once."""

    def get_now(self, key: str) -> StoredObject | None:
        """`get` within the turn, from what this process knows; for readers that can't wait (authorizers, admission)."""

    def list_now(self, prefix: str) -> ListResult:
        """`list` of everything below a prefix within the turn."""

    def changes_now(self, revision: int) -> Iterable[tuple[StoredObject | None, StoredObject | None]]:
        """Every write behind `revision`, in order, within the turn: the object before and after it. Compacted."""

    def close(self) -> None:
        """Ends all watchers."""
