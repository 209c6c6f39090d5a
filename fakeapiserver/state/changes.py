"""The history of a storage as objects: each write with the object before and after it."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.state import diff
from fakeapiserver.storage.keys import resource_of
from fakeapiserver.storage.mvcc import Change


class ObjectChange(Struct, frozen=True):
    """A write. `resource` is such as `pods` or `widgets.example.com`; `before` is None for a creation, `after` for a deletion."""

    revision: int
    resource: str
    before: Object | None
    after: Object | None


def decoded(changes: Iterable[Change]) -> Iterator[ObjectChange]:
    """The changes with their objects, in order."""
    for change in changes:
        before, after = (
            json.decode(state.value) if state is not None else None for state in (change.previous, change.current)
        )
        yield ObjectChange(change.revision, diff.title_of(resource_of(change.key)), before, after)
