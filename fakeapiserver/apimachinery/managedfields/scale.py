"""managedFields of an object seen through its scale subresource, and back.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go.

`paths` has, for each apiVersion of the parent, the path elements of its replicas, or None for a version without scale.
"""

from collections.abc import Mapping
from typing import Final

from fakeapiserver.apimachinery.managedfields.entries import APPLY, Managed, ManagerId, Owned, decode, encode
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, contains, difference, insert
from fakeapiserver.apimachinery.meta import Object

SCALE_VERSION: Final = "autoscaling/v1"
_IN_SCALE: Final = ("f:spec", "f:replicas")
ReplicasPaths = Mapping[str, tuple[str, ...] | None]


def to_scale(entries: list[Object] | None, paths: ReplicasPaths) -> list[Object]:
    """The entries that own the replicas, as entries of the Scale."""
    of_scale: Managed = {}
    for key, owned in decode(entries, trusted=True).items():
        path = paths.get(owned.api_version)
        if path and contains(owned.fields, path):
            of_scale[key] = Owned(_only(_IN_SCALE), SCALE_VERSION, owned.time)
    return encode(of_scale)


def to_parent(
    entries: list[Object] | None, scale_entries: list[Object] | None, paths: ReplicasPaths, api_version: str
) -> list[Object]:
    """The parent's entries after a write to the Scale, which came in under the parent's `api_version`.

    An updater that owns replicas has another version than the Scale: it loses them to a second entry of its own.
    """
    scaled = {_in_scale(key, owned): owned for key, owned in decode(scale_entries, trusted=True).items()}
    parent = decode(entries, trusted=True)
    out: Managed = {}
    for key, owned in parent.items():
        if owned.api_version not in paths:
            continue
        path = paths[owned.api_version]
        if not path or not contains(owned.fields, path):
            out[key] = owned
        elif key in scaled:
            out[key] = owned
            del scaled[key]
        elif rest := difference(owned.fields, _only(path)):
            out[key] = owned.holding(rest)
    path = paths.get(api_version)
    for key, owned in scaled.items():
        if not contains(owned.fields, _IN_SCALE):
            continue
        known = parent.get(key)
        out[key] = Owned(_only(path or _IN_SCALE), api_version, known.time if known else None)
    return encode(out)


def _in_scale(key: ManagerId, owned: Owned) -> ManagerId:
    return key if key.operation == APPLY else key._replace(api_version=owned.api_version)


def _only(path: tuple[str, ...]) -> FieldSet:
    fields: FieldSet = {}
    insert(fields, path)
    return fields
