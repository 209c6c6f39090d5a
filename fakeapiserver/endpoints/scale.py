"""The scale subresource: replicas of workloads and custom resources behind one small kind.

Upstream: pkg/registry/apps/deployment/storage/storage.go (ScaleREST), apiextensions-apiserver/pkg/registry/customresource/etcd.go.
"""

from typing import Any, Final

from fakeapiserver.apimachinery import field, labels
from fakeapiserver.apimachinery.errors import new_bad_request, new_invalid
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.patch import merge as merge_patch
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.body import GO_NAMES, decode_body
from fakeapiserver.endpoints.create import write_request
from fakeapiserver.endpoints.negotiation import JSON, YAML, body_media_type
from fakeapiserver.endpoints.options import write_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths

_GVK: Final = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def scale(request: Request, scope: RequestScope) -> Response:
    """GET, PUT and PATCH. A write changes the replicas of the object through the store's own loop."""
    info, store = request.info, scope.store
    assert store is not None
    paths = scope.scale_paths
    if info.verb == "get":
        found = await store.get(info.namespace, info.name)
        return respond.encoded(request, scale_of(scope.decode(found.value), paths), respond.accepted(request, scope))
    kind = "UpdateOptions" if info.verb == "update" else "PatchOptions"
    media_type = request.header(b"content-type").partition(";")[0].strip()
    options = write_options(request.query, kind, apply=media_type == "application/apply-patch+yaml")
    data = await request.body()
    wanted = write_request(request, scope, options, info.name)

    def transform(current: Object | None) -> Object:
        assert current is not None
        before = scale_of(current, paths)
        after = _checked(_changed(before, data, media_type, info.verb), before)
        return _with_replicas(current, paths, after)

    written = await store.update(wanted, transform)
    return respond.encoded(request, scale_of(scope.decode(written.value), paths), respond.accepted(request, scope))


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    """The Scale object that stands for `obj`."""
    meta = {key: metadata(obj)[key] for key in _COPIED if key in metadata(obj)}
    replicas = value_at(obj, paths.spec_replicas)
    status: Object = {"replicas": value_at(obj, paths.status_replicas) or 0}
    selector = selector_text(value_at(obj, paths.selector)) if paths.selector else ""
    if selector:
        status["selector"] = selector
    return {**_GVK, "metadata": meta, "spec": {"replicas": replicas} if replicas else {}, "status": status}


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


def _changed(before: Object, data: bytes, media_type: str, verb: str) -> Object:
    try:
        if verb == "update":
            document, _ = decode_body(data, body_media_type(media_type))
        elif media_type == "application/json-patch+json":
            document = json_patch.apply(before, json_patch.decode(data))
        else:
            patch, _ = decode_body(data, YAML if media_type.endswith("+yaml") else JSON)
            document = merge_patch.apply(before, patch)
    except ValueError as error:
        raise new_bad_request(str(error)) from None
    if not isinstance(document, dict):
        raise new_bad_request("the body is not a Scale")
    return document


def _checked(after: Object, before: Object) -> Object:
    name = metadata(before).get("name", "")
    if after.get("kind", "Scale") != "Scale":
        raise new_bad_request(f"the kind in the data ({after['kind']}) does not match the expected kind (Scale)")
    found = metadata(after).get("name", "")
    if found != name:
        raise new_bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")
    replicas = (after.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        text = "json: cannot unmarshal " + GO_NAMES.get(type(replicas), "object")
        raise new_bad_request(
            f'Scale in version "v1" cannot be handled as a Scale: {text} into Go struct field '
            "ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        detail = "must be greater than or equal to 0"
        raise new_invalid(GroupKind("autoscaling", "Scale"), name, [field.invalid("spec.replicas", replicas, detail)])
    return after


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
