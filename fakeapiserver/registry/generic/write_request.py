"""One write as the store is asked for it, what it answers, and who else has a say in it.

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
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

# What a write makes of the current object (None: there is none), or a StatusError. Pure: a lost race runs it again.
Transform = Callable[[Object | None], Object]


class WriteRequest(Struct):
    """One write, beside its transform. `kind` is the served version that the request speaks; `applied` says that the
    transform has settled managedFields itself (server-side apply); `empties` are what the object has lost in Go's words;
    `of_collection`: nobody has asked for this object by its name, so admission isn't told one; `verb` is what authorizers were
    asked about."""

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


class Guard:
    """Who else looks at writes, and may ask others first."""

    async def check(self, request: WriteRequest, obj: Object, old: Object | None) -> None:
        """Looks before anything else does; `old` is None for a new object. StatusError refuses the write."""

    async def errors(self, request: WriteRequest, obj: Object, old: Object | None, found: ErrorList) -> ErrorList:
        """What is wrong with the object; `found` is what validation says."""
        return found


class Allocation(Protocol):
    """Hands out what a kind's objects hold beside themselves (upstream: BeginCreate, BeginUpdate and AfterDelete of a Store)."""

    def creating(self, obj: Object, dry_run: bool) -> AbstractAsyncContextManager[None]:
        """Around the creation of an object, which it may fill in. StatusError; what is raised within takes it all back."""

    def updating(self, obj: Object, old: Object, dry_run: bool) -> AbstractAsyncContextManager[None]:
        """Around an update, as `creating`."""

    async def release(self, obj: Object) -> None:
        """The object is gone."""

    def restore(self, objects: Iterable[Object]) -> None:
        """Another state was brought back: these are all the objects there are now."""


class View(Protocol):
    """How admission sees a write through a subresource of another kind, such as Scale."""

    kind: GroupVersionKind

    def sent(self) -> tuple[Object, Object]:
        """What the last run of the transform made of which object, both in this kind."""

    def show(self, obj: Object) -> Object:
        """A whole object in this kind."""

    def take(self, obj: Object, after: Object) -> Object:
        """The whole object with what mutating plugins have made of `sent`."""


class Written(Struct, frozen=True):
    """The stored form of the answer. `created`: the object is new. `deleted`: it is gone (its last state is the value)."""

    value: bytes
    created: bool = False
    deleted: bool = False
