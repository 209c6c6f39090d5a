"""The request and the result of a write to the store, and the interfaces that take part: Guard, Allocation, View.

Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go (UpdatedObjectInfo, the options of writes) and
k8s.io/apiserver/pkg/registry/generic/registry/store.go (BeginCreate, BeginUpdate, AfterDelete).
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from fakeapiserver.admission.interfaces import Annotations
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, copied, metadata
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.registry.generic.deleter import Marking

# Makes the new object from the current one (None: the object doesn't exist). Raises StatusError. Pure, because a lost race runs it again.
Transform = Callable[[Object | None], Object]


def posted(obj: Object) -> Transform:
    """The transform of a POST. An object whose name is generated may need another attempt, which must not share what admission and the
    strategy change in place."""
    meta = metadata(obj)
    if meta.get("generateName") and not meta.get("name"):
        return lambda current: {name: copied(value) for name, value in obj.items()}
    return lambda current: {**obj, "metadata": dict(meta)}


class WriteRequest(Struct):
    """A write, without its transform.

    `kind` is the kind in the version of the request. `verb` is the one that was authorized. `applied`: the transform has
    updated managedFields itself (server-side apply). `empties` are the empty lists and maps that decoding has dropped.
    `of_collection`: part of a deletecollection, so admission doesn't see the object's name. `view`: the write goes through
    a subresource of another kind. `warnings` are added to on the way. `marking`: the write is a DELETE, and this
    marks the object. `size`: the bytes of the body."""

    kind: Kind
    user: UserInfo
    manager: str
    namespace: str
    name: str = ""
    subresource: str = ""
    verb: str = "update"
    dry_run: bool = False
    applied: bool = False
    uid_precondition: str = ""
    options: Object = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    empties: "Empties" = field(default_factory=dict)
    view: "View | None" = None
    annotations: Annotations | None = None
    of_collection: bool = False
    marking: "Marking | None" = None
    size: int = 0


class Guard:
    """Checks writes besides admission and validation; it may do I/O."""

    async def check(self, request: WriteRequest, obj: Object, old: Object | None) -> None:
        """Called before the object is prepared and validated; `old` is None on create. StatusError refuses the write."""

    async def errors(self, request: WriteRequest, obj: Object, old: Object | None, errors: ErrorList) -> ErrorList:
        """All errors in the object; `errors` are those of validation."""
        return errors


class Allocation(Protocol):
    """Allocates what objects of a kind hold, such as addresses and ports (upstream: BeginCreate, BeginUpdate, AfterDelete)."""

    def creating(self, obj: Object, dry_run: bool) -> AbstractAsyncContextManager[None]:
        """Surrounds the creation of an object and may fill in its fields. An exception inside releases what was allocated.
        StatusError if nothing is left."""

    def updating(self, obj: Object, old: Object, dry_run: bool) -> AbstractAsyncContextManager[None]:
        """Surrounds an update, as `creating`."""

    async def release(self, obj: Object) -> None:
        """Called after the object was deleted."""

    def restore(self, objects: Iterable[Object]) -> None:
        """Called after a snapshot was restored: `objects` are all that exist now."""


class View(Protocol):
    """A write through a subresource of another kind, such as Scale, as admission sees it."""

    kind: GroupVersionKind

    def sent(self) -> tuple[Object, Object]:
        """The new and the old object of the transform's last run, both in this kind."""

    def show(self, obj: Object) -> Object:
        """The whole object in this kind."""

    def take(self, obj: Object, after: Object) -> Object:
        """The whole object with the changes that mutating plugins have made to the new object of `sent`."""


class Written(Struct, frozen=True):
    """The result of a write. `value` is the object's stored form. `created`: the object is new. `deleted`: the object is removed, and
    `value` is its last state."""

    value: bytes
    created: bool = False
    deleted: bool = False
