"""The state of a custom resource that is served, and the conditions of its definition."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.storage.interface import Watcher


class Served(Struct, frozen=True):
    """A served version of a custom resource."""

    row: APIResource
    kind: CustomKind
    store: Store
    columns: Sequence[Object]
    scale: Object
    outdated_before: int
    replicas_paths: dict[str, tuple[str, ...] | None]


class Storage(NamedTuple):
    """The storage that upstream creates with a resource's first request, and again when its definition changes: `since` is the revision of
    its creation, `watchers` are its open watches.
    """

    since: int
    watchers: set[Watcher]


class State(NamedTuple):
    """The parts of a definition that decide how its resource is served: a digest of its spec, the accepted names, whether it is
    terminating.
    """

    spec: bytes
    names: Object | None
    terminating: bool


class _Status(msgspec.Struct):
    accepted_names: Object | None = msgspec.field(default=None, name="acceptedNames")


class Stored(msgspec.Struct):
    """The part of a stored definition's JSON that is decoded; the rest is skipped."""

    status: _Status | None = None
