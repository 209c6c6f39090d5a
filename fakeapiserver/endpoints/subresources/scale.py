"""The scale subresource: replicas of workloads and custom resources behind one small kind.

A write runs the transform of any PUT or patch on the Scale that stands for the object, and takes the replicas and who owns them back.
Upstream: pkg/registry/apps/deployment/storage/storage.go (ScaleREST), apiextensions-apiserver/pkg/registry/customresource/etcd.go.
"""

import dataclasses
from typing import Any, Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import labels, managedfields
from fakeapiserver.apimachinery.errors import (
    StatusError,
)
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.managedfields import scale as owners
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation import table
from fakeapiserver.endpoints.negotiation.media_types import Accept
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths
from fakeapiserver.endpoints.subresources.scale_rules import value_at
from fakeapiserver.endpoints.verbs import patch, update
from fakeapiserver.endpoints.verbs.create import write_request
from fakeapiserver.registry.generic.write_request import Transform

_KIND: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_TYPE: Final = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def scale(request: Request, scope: RequestScope) -> Response:
    """GET, PUT and PATCH. A write changes the replicas of the object through the store's own loop."""
    info, store, rules = request.info, scope.store, scope.dialect.scale
    assert store is not None
    if info.verb == "patch":
        patch.patch_type(request, scope.dialect)
    accept = respond.accepted(request, scope)
    if info.verb == "get":
        obj = scope.decode((await store.get(info.namespace, info.name)).value)
        shown = _scale(scope, obj)
        rules.check_readable(obj, scope.scale_paths)
        return _answer(request, scope, shown, accept)
    if info.verb == "patch":
        options, change, applied = await patch.prepared(request, scope.scale, scope)
        wanted = write_request(request, scope, options, info.name)
    else:
        try:
            options, obj = await update.decoded(request, scope.scale)
        except StatusError as error:
            raise rules.refusal(error) from None
        wanted = write_request(request, scope, options, info.name)
        wanted.uid_precondition = metadata(obj).get("uid", "")
        change, applied = update.replacement(obj), False
    wanted.applied = True
    change = rules.applied(change, info.name) if applied else _owned(change, wanted.manager, scope)
    wanted.view = through = _Through(change, scope)
    written = await store.write(wanted, through.transform)
    return _answer(request, scope, _scale(scope, scope.decode(written.value)), accept)


def _answer(request: Request, scope: RequestScope, obj: Object, accept: Accept) -> Response:
    """The Scale as it is, or as its Table or metadata."""
    if accept.as_kind:
        rules = scope.dialect.scale
        own = replace(scope.scale, resource=dataclasses.replace(scope.resource, columns=rules.columns), row=rules.row)
        obj = table.transformed(request, own, accept, [obj], None)
    return respond.encoded(request, obj, accept)


def _scale(scope: RequestScope, obj: Object) -> Object:
    """Returns what `scale_of` does. Raises StatusError 500 for fields of other types."""
    scope.dialect.scale.check_types(obj, scope.scale_paths)
    return scale_of(obj, scope.scale_paths)


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


# -------------------------------------------------------------------- writes


def _owned(change: Transform, manager: str, scope: RequestScope) -> Transform:
    """The change with its manager written into the Scale's managedFields."""
    operation = managedfields.Operation(scope.scale.kind.typed, manager, _TYPE["apiVersion"], "scale")

    def transform(before: Object | None) -> Object:
        return managedfields.update(before, change(before), operation)

    return transform


class _Through:
    """A change of the Scale as a change of the object it stands for, which admission sees as a Scale, too."""

    kind = _KIND

    def __init__(self, change: Transform, scope: RequestScope) -> None:
        self._change = change
        self._scope = scope
        self._paths = scope.scale_paths
        self._rules = scope.dialect.scale
        self._replicas_paths = self._rules.replicas_paths(scope)
        self._sent: tuple[Object, Object] = {}, {}

    def transform(self, current: Object | None) -> Object:
        assert current is not None  # scaling never creates
        before = _scale(self._scope, current)
        self._rules.before(before, current, self._paths)
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
        self._rules.check(after, current, self._scope)
        changed = _with_replicas(current, self._paths, after)
        self._rules.settle(changed, current, self._scope)
        entries, scale_entries = metadata(current).get("managedFields"), metadata(after).get("managedFields")
        version = str(self._scope.gvk.group_version)
        if kept := owners.to_parent(entries, scale_entries, self._replicas_paths, version):
            metadata(changed)["managedFields"] = kept
        else:
            metadata(changed).pop("managedFields", None)
        return changed


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
