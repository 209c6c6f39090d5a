"""The interface of a storage backend: one global revision, compare-and-swap, lists at a revision, watches from one.

Upstream: k8s.io/apiserver/pkg/storage/interfaces.go, errors.go. testing/storage_suite holds the tests that any backend must pass.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.go.quote import go_quote

# Why a server that was started with --read-only refuses a write.
READ_ONLY: Final = "this server is read-only"


class StorageError(Exception):
    """The base of a backend's errors, which the store turns into a metav1.Status."""


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
    """The object is too large for the backend; clients get this error's text."""


class Unwritable(StorageError):
    """The backend can't keep writes, for now or, if `lasting`, until the server is started again. Clients get its text."""

    def __init__(self, text: str, *, lasting: bool) -> None:
        super().__init__(text)
        self.lasting = lasting


class ReadOnly(StorageError):
    """The backend takes no writes, because its server was started so."""

    def __init__(self) -> None:
        super().__init__(READ_ONLY)


class Unreadable(StorageError):
    """The stored bytes of an object can't be decrypted. `key` is the backend's, `seconds` how long this has been so."""

    def __init__(self, key: str, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.key = key
        self.seconds = seconds

    @property
    def in_list(self) -> str:
        """The text of a list that the object is in."""
        return f"unable to transform key {go_quote(self.key)}: {self}"


class Compacted(StorageError):
    """The requested revision is no longer known; `oldest` is the oldest known one."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest known revision is {oldest}")
        self.oldest = oldest


class ResourceVersionTooLarge(StorageError):
    """The requested revision doesn't exist yet; `current` is the newest."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current


class Index(Struct, frozen=True, gc=False):
    """The facts that are kept next to the bytes, so that selectors and owner graphs don't decode them.
    `version` is the API version in which the object is stored."""

    labels: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    version: str = ""


class StoredObject(Struct, frozen=True, gc=False):
    """A state of an object. `value` is canonical JSON with its resourceVersion, which is at `offset`. Immutable."""

    key: str
    value: bytes
    mod_revision: int
    create_revision: int
    index: Index
    offset: int
    # Whether an update that changes nothing is written all the same, which `get_for_update` sets.
    is_stale: bool = False


class ListResult(Struct, frozen=True):
    """`items` in the order of their keys. `more`: the limit cut the list, and keys follow, selected or not; `remaining`
    says how many there are beyond the limit (a predicate doesn't count). `revision` is the state the list shows."""

    items: list[StoredObject]
    revision: int
    remaining: int = 0
    more: bool = False


Predicate = Callable[[StoredObject], bool]


_NO_LABELS: Final[Mapping[str, str]] = {}


class WithLabels:
    """A predicate that selects the objects with these labels. A storage may find them by an index instead of calling it."""

    __slots__ = ("_pairs", "labels")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self._pairs = labels.items()

    def __call__(self, stored: StoredObject) -> bool:
        return self._pairs <= stored.index.labels.items()


class ListQuery(Struct, frozen=True, kw_only=True):
    """The choice of a list's objects: at `revision` (0: now) those whose keys are not before `start`, and of these at most `limit` (0: all)
    that `predicate` selects. `minimum_revision`: any state that is at least as new will do (0: any that this process knows)."""

    revision: int = 0
    start: str = ""
    limit: int = 0
    predicate: Predicate | None = None
    minimum_revision: int | None = None

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that all selected objects have, as far as that is known."""
        return self.predicate.labels if isinstance(self.predicate, WithLabels) else _NO_LABELS


EVERYTHING: Final = ListQuery()
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Event(Struct):
    """A change as a watcher sees it. `object` is the new state; for DELETED the last one, stamped with the deletion's
    revision. `frames` keeps encodings, shared by all watchers that see the same event; `gone` is the object as watchers see it whose
    selector no longer matches."""

    type: EventType
    object: StoredObject
    previous: StoredObject | None
    revision: int
    frames: dict[str, bytes | memoryview] = field(default_factory=dict)
    gone: StoredObject | None = None


class Watcher(Protocol):
    @property
    def progress(self) -> int:
        """The revision up to which the watcher has handed out everything, for bookmarks."""

    async def next_batch(self, timeout: float) -> list[Event] | None:
        """The events since the last call, in order; [] if none came within `timeout` seconds. None: the watcher has ended (it was
        closed, or has fallen too far behind), and the client must start again."""

    def wake(self) -> None:
        """Lets `next_batch` return now."""

    def end(self) -> None:
        """Ends the watcher once it has handed out what is buffered."""

    def close(self) -> None:
        """Ends the watcher at once. A second call does nothing."""


class Storage(Protocol):
    """Keys look like `/registry/pods/default/web`; a prefix ends with a slash. Callers hand in values without a
    resourceVersion: the backend puts `"resourceVersion":"N",` at `offset` when the revision is known."""

    @property
    def revision(self) -> int:
        """The newest revision that this process knows: it starts at 1 and rises with each write, by one where no one else writes."""

    def generation(self, prefix: str) -> int:
        """The revision of the newest write below a resource's prefix. Cheap, for caches."""

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        """Stores a new object. Raises KeyExists, RequestTooLarge."""

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        """Replaces an object. Raises ResourceVersionConflict unless it is still at `expected_revision`, KeyNotFound,
        RequestTooLarge."""

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        """Removes an object and returns its last state, stamped with the deletion's revision. Raises KeyNotFound,
        ResourceVersionConflict."""

    async def get(self, key: str, *, minimum_revision: int | None = None) -> StoredObject | None:
        """The object, or None if it doesn't exist: its newest state, or with `minimum_revision` any state that is at least as new (0: any
        that this process knows). Raises ResourceVersionTooLarge if that revision doesn't exist yet."""

    async def get_for_update(self, key: str, *, newest: bool = False) -> StoredObject | None:
        """The object from which an update starts. Unless it is to be the `newest`, it may be a state that another server has replaced:
        the update is then refused by compare-and-swap, and must not be refused for another reason before `is_newest` was asked."""

    async def is_newest(self, stored: StoredObject) -> bool:
        """Reports whether an object of `get_for_update` was the newest state of its key when it was read, or still is."""

    async def list(self, prefix: str, query: ListQuery = EVERYTHING) -> ListResult:
        """The objects below the prefix. Raises Compacted, ResourceVersionTooLarge."""

    def watch(self, prefix: str, *, revision: int | None = None, predicate: Predicate | None = None) -> Watcher:
        """A watcher that gets every event after `revision` (None: now) once and in order. Raises Compacted if `revision` is forgotten."""

    async def delivered(self, key: str) -> None:
        """Returns when a client that reads its watches promptly has read what was written to the key: some milliseconds from now,
        or at once if no watch is open for it. A write in two steps waits here between them."""

    async def catch_up(self) -> None:
        """Returns when this process knows everything that others had written by the time of the call, or gives up after some seconds."""

    def get_now(self, key: str) -> StoredObject | None:
        """`get` without awaiting, from what this process knows; for authorizers and admission."""

    def list_now(self, prefix: str) -> ListResult:
        """`list` of everything below a prefix, without awaiting."""

    def changes_now(self, revision: int) -> Iterable[tuple[StoredObject | None, StoredObject | None]]:
        """Every write after `revision`, in order, as the object before and after it; without awaiting. Raises Compacted."""

    def close(self) -> None:
        """Ends all watchers."""


class Backend(Storage, Protocol):
    """A storage with objects and a history of its own, rather than a view of another one."""

    @property
    def compacted(self) -> int:
        """The oldest revision that a watch can start behind, and that a list can be sure to show."""

    async def compact(self, revision: int) -> None:
        """Forgets the history up to `revision`. Raises ResourceVersionTooLarge if `revision` doesn't exist yet."""

    @property
    def watchers(self) -> int:
        """The number of open watches."""
