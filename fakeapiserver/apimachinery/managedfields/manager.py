"""managedFields of an object after an update, and server-side apply.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal (fieldmanager.go, structuredmerge.go, managedfieldsupdater.go,
stripmeta.go, skipnonapplied.go, lastappliedmanager.go, versioncheck.go).

    update(live, new, operation)     the object to store: `new` with the managedFields that follow from `live`
    apply(live, applied, operation)  the object to store: `live` with the applied fields laid over it
Both return a new object that shares nested values with the arguments. Where apply takes the last part out of a map or list it
leaves a null, as upstream does, for the decoding of built-in kinds to drop.
"""

from typing import Final

from fakeapiserver.apimachinery.errors import new_apply_conflict, new_bad_request, status_error
from fakeapiserver.apimachinery.managedfields.compare import to_fieldset
from fakeapiserver.apimachinery.managedfields.entries import (
    APPLY,
    UPDATE,
    Managed,
    ManagerId,
    Owned,
    are_readable,
    cap_update_managers,
    decode,
    encode,
)
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, difference, union
from fakeapiserver.apimachinery.managedfields.last_applied import allowed_conflicts, refresh_last_applied
from fakeapiserver.apimachinery.managedfields.merge import merge
from fakeapiserver.apimachinery.managedfields.operation import Operation
from fakeapiserver.apimachinery.managedfields.ownership import Conflicts, Versions, take_from_others
from fakeapiserver.apimachinery.managedfields.prune import prune
from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
from fakeapiserver.apimachinery.managedfields.validate import fits, has_elements, validate
from fakeapiserver.apimachinery.meta import Object, equal, metadata, same
from fakeapiserver.apimachinery.schema.decoders import Empties

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_SELF: Final = ManagerId("current-operation", UPDATE, "", "")
_META: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_NEVER_OWNED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{"f:" + key: {} for key in _META}},
}


def update(
    live: Object | None,
    new: Object,
    operation: Operation,
    empties: Empties | None = None,
    *,
    keeps_live: bool = False,
) -> Object:
    """Returns the object to store after a create (`live` None), update or patch.

    empties: the empty lists and maps that were sent, as far as `new` doesn't have them.
    keeps_live: if the owners can't be computed, the object keeps those of the live one, as from 1.37 on. Default: it loses them.
    """
    managed, schema = _managed_by_request(live, new, operation.subresource), operation.schema
    bare = _without_managed_fields(new)
    if not managed and live is not None and metadata(live).get("uid"):
        return bare
    failed = with_owners_of(live, bare) if keeps_live and live is not None else bare
    if schema.nulls and not (_fits(bare, live, schema) and (live is None or _fits(live, bare, schema))):
        return failed  # what doesn't fit its type has no owners: a status that isn't stored may not, nor what a schema let pass once
    if not (_has_keys(bare, schema) and (live is None or _has_keys(live, schema))):
        return failed
    versions = operation.versions(empties)
    before = _without_managed_fields(live) if live is not None else None
    try:
        _check_live(before, versions)
        managed = _update((before, bare), managed, versions, operation.entry(UPDATE), operation.now)
    except ValueError:
        # An item without a path element, or an entry with an invalid apiVersion: upstream stores no owners rather than wrong ones.
        return failed
    return _with_managed_fields(bare, cap_update_managers(managed))


def with_owners_of(live: Object, obj: Object) -> Object:
    """Returns the object with the managed fields of the live one."""
    if (entries := metadata(live).get("managedFields")) is None:
        return obj
    return {**obj, "metadata": {**metadata(obj), "managedFields": entries}}


def _fits(obj: Object, beside: Object | None, schema: TypedSchema) -> bool:
    """Reports whether the content of a custom resource fits its type. What equals that of an object looked at, too, is left out."""
    fields = schema.root.child
    for key, value in obj.items():
        if key == "metadata" or value is None or (beside is not None and equal(value, beside.get(key))):
            continue
        child = fields(key)
        if child is None or not fits(child, value):
            return False
    return True


def _has_keys(obj: Object, schema: TypedSchema) -> bool:
    """Reports whether the items of an object's own lists have their keys. A service account's `secrets` are the one list of built-in kinds
    whose keys neither validation requires nor defaults fill in.
    """
    fields = schema.root.child
    for key, value in obj.items():
        if type(value) is list and (child := fields(key)) is not None and not has_elements(child, value):
            return False
    return True


def _update(
    change: tuple[Object | None, Object], managed: Managed, versions: Versions, key: ManagerId, now: str | None
) -> Managed:
    live = change[0]
    managed = versions.reconciled(live, managed)
    managed, (added, modified, _) = take_from_others(change, managed, versions, _SELF, force=True)
    fields = difference(versions.owned(union(modified, added)), _NEVER_OWNED)
    if fields:
        if previous := managed.get(key):
            fields = union(fields, previous.fields)
        managed[key] = Owned(fields, versions.current, now)
    return managed


def apply(
    live: Object | None,
    applied: Object,
    operation: Operation,
    *,
    force: bool = False,
    kind: str = "",
) -> Object:
    """Returns the object to store after an apply. `kind` is the expected one, the live object's if empty.

    Raises StatusError: 409 if other managers own what it changes, 400 if the applied object has managedFields or another version, 500
    if it doesn't fit its type.
    """
    versions = operation.versions()
    version = applied.get("apiVersion", "")
    if version != operation.api_version or applied.get("kind", "") != (kind or (live or applied).get("kind", "")):
        raise new_bad_request(f"invalid object type: {_gvk(version, applied.get('kind', ''))}")
    try:
        managed = decode(metadata(live or {}).get("managedFields"), trusted=True)
    except ValueError as error:
        raise status_error(500, "", f"failed to decode managed fields: {error}") from None
    before = _without_managed_fields(live) if live is not None else None
    key = operation.entry(APPLY)
    try:
        if not managed and before is not None:
            _check_live(before, versions)
            first = operation.entry(UPDATE, _BEFORE_FIRST_APPLY)
            managed = cap_update_managers(_update((None, before), managed, versions, first, operation.now))
    except ValueError as error:
        problem = _untyped(before, versions, "convert new object", " to smd typed") or str(error)
        raise status_error(500, "", f"failed to create manager for existing fields: {problem}") from None
    _check_applied(applied, versions)
    try:
        _check_live(before, versions)
        result, managed = _apply_or_upgrade(before, applied, managed, versions, key, force=force, now=operation.now)
    except ValueError as error:
        problem = _untyped(before, versions, "create typed live object", "") or str(error)
        raise status_error(500, "", problem) from None
    if operation.manager == "kubectl":
        result = refresh_last_applied(result, applied)
    return _with_managed_fields(result, managed)


def _apply_or_upgrade(
    live: Object | None,
    applied: Object,
    managed: Managed,
    versions: Versions,
    key: ManagerId,
    *,
    force: bool,
    now: str | None,
) -> tuple[Object, Managed]:
    """Does what _apply does; for kubectl it also takes over the fields of its client-side apply."""
    try:
        return _apply(live, applied, managed, versions, key, force=force, now=now)
    except Conflicts as conflicts:
        remaining = conflicts
        if key.manager == "kubectl" and live is not None:
            remaining = conflicts.without(allowed_conflicts(live, versions.schema, versions.current))
        if remaining.paths:
            raise new_apply_conflict(remaining.causes(), remaining.message()) from None
        return _apply(live, applied, managed, versions, key, force=True, now=now)


def _apply(
    live: Object | None,
    applied: Object,
    managed: Managed,
    versions: Versions,
    key: ManagerId,
    *,
    force: bool,
    now: str | None,
) -> tuple[Object, Managed]:
    schema, version = versions.schema, versions.current
    managed = versions.reconciled(live, managed)
    merged = merge(schema.root, live or {}, applied)
    last = managed.get(key)
    managed = managed | {key: Owned(versions.owned(to_fieldset(applied, schema)), version, last.time if last else None)}
    result = prune(merged, managed, key, last, versions)
    managed, _ = take_from_others((live, result), managed, versions, key, force=force)
    changed = live is None or not (same(result, live) if schema.nulls else equal(result, live))
    if owned := managed.pop(key, None):
        fields = difference(owned.fields, _NEVER_OWNED)
        if fields:
            unchanged = last is not None and version == last.api_version and equal(fields, last.fields)
            time = now if changed else owned.time
            managed[key] = last if unchanged and last and time == last.time else Owned(fields, version, time)
    # What equals what is there leaves it as it is: 1.0 a 1, members in another order a text.
    return result if live is None or changed else live, managed


def _check_applied(applied: Object, versions: Versions) -> None:
    if are_readable(metadata(applied).get("managedFields")):
        raise new_bad_request("metadata.managedFields must be nil")
    if problem := validate(applied, versions.schema):
        raise status_error(500, "", f"failed to create typed patch object ({_described(applied)}): {problem}")


def _check_live(live: Object | None, versions: Versions) -> None:
    """ValueError where a custom resource was stored under another schema, or by another version, and doesn't fit its type."""
    if live is not None and versions.schema.nulls and (problem := validate(live, versions.schema, duplicates=True)):
        raise ValueError(problem)


def _untyped(live: Object | None, versions: Versions, what: str, more: str) -> str:
    """Returns upstream's error if the stored object doesn't fit its type, else ""."""
    problem = validate(live, versions.schema, duplicates=True) if live is not None else ""
    return f"failed to {what} ({_described(live)}){more}: {problem}" if live is not None and problem else ""


def _described(obj: Object) -> str:
    gvk = _gvk(obj.get("apiVersion", ""), obj.get("kind", ""))
    named = (metadata(obj).get(key) for key in ("namespace", "name"))
    return f"{'/'.join(value if isinstance(value, str) else '' for value in named)}; {gvk}"


def _gvk(version: str, kind: str) -> str:
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


def _managed_by_request(live: Object | None, new: Object, subresource: str) -> Managed:
    """Returns the managedFields to start from:

    those in the request if it may set them and they are valid, else the live object's.
    """
    stored = metadata(live).get("managedFields") if live is not None else None
    sent = metadata(new).get("managedFields")
    if not subresource and sent is not None and sent is not stored and not equal(sent, stored):
        if sent in ([], [{}]):
            return {}
        try:
            if managed := decode(sent, trusted=False):
                return managed
        except (ValueError, AttributeError, TypeError):
            pass
    try:
        return decode(stored, trusted=True)
    except ValueError:
        return {}


def _without_managed_fields(obj: Object) -> Object:
    """A copy, to the depth of its metadata, without managedFields."""
    out = dict(obj)
    if "metadata" in out and isinstance(out["metadata"], dict):
        out["metadata"] = {key: value for key, value in out["metadata"].items() if key != "managedFields"}
    return out


def _with_managed_fields(obj: Object, managed: Managed) -> Object:
    if managed:
        obj["metadata"] = dict(obj.get("metadata") or {}, managedFields=encode(managed))
    return obj


def keep_times_if_unchanged(live: Object, new: Object) -> Object:
    """`new`, or `live` itself where they differ in nothing but the times of managedFields.

    Upstream: k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go (IgnoreManagedFieldsTimestampsTransformer).
    """
    before, after = metadata(live).get("managedFields") or [], metadata(new).get("managedFields") or []
    if len(before) != len(after) or not equal([*map(_timeless, before)], [*map(_timeless, after)]):
        return new
    return live if same_content(live, new) else new


def same_content(live: Object, new: Object) -> bool:
    """Reports whether nothing but managedFields differs."""
    was, is_now = _without_managed_fields(live), _without_managed_fields(new)
    return equal(was, is_now) and same(was, is_now)


def _timeless(entry: Object) -> Object:
    return {key: value for key, value in entry.items() if key != "time"}


__all__ = ["apply", "keep_times_if_unchanged", "same_content", "update"]
