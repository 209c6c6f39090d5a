"""The scale subresource: replicas of workloads and custom resources behind one small kind.

A write runs the transform of any PUT or patch on the Scale that stands for the object, and takes the replicas and who owns them back.
Upstream: pkg/registry/apps/deployment/storage/storage.go (ScaleREST), apiextensions-apiserver/pkg/registry/customresource/etcd.go.
"""

import dataclasses
from typing import Any, Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import field, labels, names
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_bad_request,
    new_conflict,
    new_internal_error,
    new_invalid,
    status_error,
)
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.custom_resources import AGE_COLUMN, NAME_COLUMN
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation import table
from fakeapiserver.endpoints.negotiation.media_types import Accept
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths
from fakeapiserver.endpoints.verbs import patch, update
from fakeapiserver.endpoints.verbs.create import write_request
from fakeapiserver.endpoints.verbs.options import WriteOptions
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.generic.write_request import Transform

_SHOWN: Final = "autoscaling/v1, Kind=Scale"
_KIND: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_TYPE: Final = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
_COLUMNS: Final = tuple(
    {"name": name, "type": kind, "format": "", "priority": 0}
    for name, kind in (("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string"))
)
_CUSTOM_COLUMNS: Final = (NAME_COLUMN, *_COLUMNS[1:3], AGE_COLUMN)
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
# What upstream shows a patch of a custom resource that has no replicas: the smallest int32.
_UNSET: Final = -(2**31)
_OLD_VERSIONS: Final = {"apps": ("v1beta1", "v1beta2", "v1")}


async def scale(request: Request, scope: RequestScope) -> Response:
    """GET, PUT and PATCH. A write changes the replicas of the object through the store's own loop."""
    info, store, paths = request.info, scope.store, scope.scale_paths
    assert store is not None
    if info.verb == "patch":
        patch.patch_type(request, scope.kind.custom)
    accept = respond.accepted(request, scope)
    if info.verb == "get":
        obj = scope.decode((await store.get(info.namespace, info.name)).value)
        found = _scale(scope, obj)
        if scope.kind.custom and value_at(obj, paths.spec_replicas) is None:
            path = field.go_quote(f".{paths.spec_replicas}")
            raise new_internal_error(f"the spec replicas field {path} does not exist")
        return _answer(request, scope, found, accept)
    if info.verb == "patch":
        options, change, applied = await patch.prepared(request, scope.scale, custom=scope.kind.custom)
        wanted = write_request(request, scope, options, info.name)
    else:
        options, obj = await _decoded(request, scope)
        wanted = write_request(request, scope, options, info.name)
        wanted.uid_precondition = metadata(obj).get("uid", "")
        change, applied = update.replacement(obj), False
    wanted.applied = True
    if not applied:
        change = _owned(change, wanted.manager, scope)
    elif scope.kind.custom:
        change = _hardly_applied(change, info.name)
    wanted.view = through = _Through(change, scope)
    written = await store.write(wanted, through.transform)
    return _answer(request, scope, _scale(scope, scope.decode(written.value)), accept)


def _answer(request: Request, scope: RequestScope, obj: Object, accept: Accept) -> Response:
    """The Scale as it is, or as its Table or metadata."""
    if accept.as_kind:
        columns, row = (_CUSTOM_COLUMNS, _custom_row) if scope.kind.custom else (_COLUMNS, _row)
        own = replace(scope.scale, resource=dataclasses.replace(scope.resource, columns=columns), row=row)
        obj = table.transformed(request, own, accept, [obj], None)
    return respond.encoded(request, obj, accept)


def _row(obj: Object, now: float) -> list[object]:
    desired, available = ((obj.get(part) or {}).get("replicas", 0) for part in ("spec", "status"))
    return [metadata(obj).get("name", ""), desired, available, age(obj, now)]


def _custom_row(obj: Object, now: float) -> list[object]:
    """Returns the row of a custom resource's Scale, which upstream prints by paths: its spec has no zero."""
    name, desired, *rest = _row(obj, now)
    return [name, desired or None, *rest]


async def _decoded(request: Request, scope: RequestScope) -> tuple[WriteOptions, Object]:
    """A PUT's options and Scale. What upstream says about one it can't decode fails where custom resources know no Scale."""
    try:
        return await update.decoded(request, scope.scale)
    except StatusError as error:
        if scope.kind.custom and "cannot be handled as a Scale" in error.message:
            unknown = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
            raise new_bad_request(unknown) from None
        raise


def _scale(scope: RequestScope, obj: Object) -> Object:
    """Does what `scale_of` does; raises StatusError 500 for fields of other types, which a conversion may leave."""
    paths = scope.scale_paths
    if scope.kind.custom:
        from fakeapiserver.registry.apiextensions.customresource import nested

        try:
            nested(obj, paths.spec_replicas, int)
            nested(obj, paths.status_replicas, int)
            if paths.selector:
                nested(obj, paths.selector, str)
        except ValueError as error:
            raise status_error(500, "", str(error)) from None
    return scale_of(obj, paths)


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    """The Scale object that stands for `obj`."""
    meta = {key: metadata(obj)[key] for key in _COPIED if key in metadata(obj)}
    replicas = value_at(obj, paths.spec_replicas)
    status: Object = {"replicas": value_at(obj, paths.status_replicas) or 0}
    selector = selector_text(value_at(obj, paths.selector)) if paths.selector else ""
    if selector:
        status["selector"] = selector
    return {**_TYPE, "metadata": meta, "spec": {"replicas": replicas} if replicas else {}, "status": status}


def selector_text(selector: Any) -> str:
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" in selector or "matchExpressions" in selector:
        return str(labels.from_label_selector(selector))
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def value_at(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


# -------------------------------------------------------------------- writes


def _owned(change: Transform, manager: str, scope: RequestScope) -> Transform:
    """The change with its manager written into the Scale's managedFields."""
    from fakeapiserver.apimachinery import managedfields

    kind = scope.scale.kind

    def transform(before: Object | None) -> Object:
        return managedfields.update(
            before,
            change(before),
            schema=kind.typed,
            manager=manager,
            api_version=_TYPE["apiVersion"],
            subresource="scale",
            now=None,
        )

    return transform


def _hardly_applied(change: Transform, name: str) -> Transform:
    """Upstream's converter of custom resources knows no Scale, so applying one fails as soon as something would change."""

    def transform(before: Object | None) -> Object:
        assert before is not None  # scaling never creates
        why = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        if not metadata(before).get("managedFields"):
            live = f"failed to convert live object (/; {_SHOWN}) {why}"
            raise status_error(500, "", f"failed to create manager for existing fields: {live}")
        after = change(before)
        if after.get("spec") != before.get("spec"):
            raise status_error(500, "", f"failed to convert new object (/{name}; {_SHOWN}) {why}")
        return after

    return transform


class _Through:
    """A change of the Scale as a change of the object it stands for, which admission sees as a Scale, too."""

    kind = _KIND

    def __init__(self, change: Transform, scope: RequestScope) -> None:
        self._change = change
        self._scope = scope
        self._paths = scope.scale_paths
        self._replicas_paths = _replicas_paths(scope)
        self._sent: tuple[Object, Object] = {}, {}

    def transform(self, current: Object | None) -> Object:
        from fakeapiserver.apimachinery.managedfields import scale as owners

        assert current is not None  # scaling never creates
        before = _scale(self._scope, current)
        if self._scope.kind.custom and value_at(current, self._paths.spec_replicas) is None:
            before["spec"] = {"replicas": _UNSET}
        if shown := owners.to_scale(metadata(current).get("managedFields"), self._replicas_paths):
            before["metadata"]["managedFields"] = shown
        after = self._change(before)
        self._sent = after, before
        return self._changed(current, after)

    def sent(self) -> tuple[Object, Object]:
        return self._sent

    def show(self, obj: Object) -> Object:
        return _scale(self._scope, obj)

    def take(self, obj: Object, after: Object) -> Object:
        return obj if after is self._sent[0] else _with_replicas(obj, self._paths, after)

    def _changed(self, current: Object, after: Object) -> Object:
        from fakeapiserver.apimachinery.managedfields import scale as owners

        _check(after, current, self._scope)
        changed = _with_replicas(current, self._paths, after)
        parent = self._paths.spec_replicas.rpartition(".")[0]
        if self._scope.kind.custom and value_at(current, parent) is None:
            # A missing spec gets its defaults when it is read.
            self._scope.kind.default(changed)
        entries, scale_entries = metadata(current).get("managedFields"), metadata(after).get("managedFields")
        version = str(self._scope.gvk.group_version)
        if kept := owners.to_parent(entries, scale_entries, self._replicas_paths, version):
            metadata(changed)["managedFields"] = kept
        else:
            metadata(changed).pop("managedFields", None)
        return changed


def _replicas_paths(scope: RequestScope) -> dict[str, tuple[str, ...] | None]:
    """Returns the path of the replicas for each version that may have written the object."""
    if scope.kind.custom:
        return scope.replicas_paths
    group, path = scope.gvk.group, tuple("f:" + part for part in scope.scale_paths.spec_replicas.split("."))
    versions = _OLD_VERSIONS.get(group, (scope.gvk.version,))
    return {f"{group}/{version}" if group else version: path for version in versions}


def _check(after: Object, current: Object, scope: RequestScope) -> None:
    """Checks a new Scale as upstream's storages do. Raises StatusError 400, 409 or 422."""
    meta, name = metadata(after), metadata(current).get("name", "")
    replicas = (after.get("spec") or {}).get("replicas", 0)
    if scope.kind.custom:
        if replicas == _UNSET:
            path = field.go_quote(f".{scope.scale_paths.spec_replicas}")
            raise new_bad_request(f"the spec replicas field {path} cannot be empty")
        return
    errors = names.validate_object_meta(meta, True, names.name_is_dns_subdomain, field.Path("metadata"))
    if replicas < 0:
        errors.append(field.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    if errors:
        raise new_invalid(GroupKind("autoscaling", "Scale"), name, errors)
    if meta.get("uid") and meta["uid"] != metadata(current).get("uid"):
        raise _other_object(meta["uid"], current, scope)


def _other_object(uid: str, current: Object, scope: RequestScope) -> StatusError:
    resource = GroupResource(scope.gvk.group, f"{scope.resource.gvr.resource}/scale")
    found = metadata(current).get("uid", "")
    reason = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    return new_conflict(resource, metadata(current).get("name", ""), reason)


def _with_replicas(current: Object, paths: ScalePaths, after: Object) -> Object:
    """A copy of the object with the wanted replicas, and the Scale's resourceVersion as the precondition."""
    changed: Object = json.decode(json.encode(current))
    *parents, last = paths.spec_replicas.split(".")
    target = changed
    for part in parents:
        target = target.setdefault(part, {})
    target[last] = (after.get("spec") or {}).get("replicas", 0)
    metadata(changed)["resourceVersion"] = metadata(after).get("resourceVersion", "")
    return changed
