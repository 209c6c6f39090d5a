"""Objects as metav1.Table or PartialObjectMetadata.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go, pkg/registry/rest/table.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints.negotiation.media_types import Accept
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import RequestScope

_INCLUDE_OBJECT: Final = ("Metadata", "None", "Object")
# The time of a bookmark's object.
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"


def transformed(
    request: Request, scope: RequestScope, accept: Accept, objects: list[Object], list_meta: Object | None
) -> Object:
    """`objects` (RequestScope.internal) in the form `accept` asks for; `list_meta` is None for a single object."""
    api_version = f"meta.k8s.io/{accept.as_version}"
    if accept.as_kind == "Table":
        include = include_object(request)
        if scope.store is not None:
            objects = scope.store.strategy.table_order(objects)
        rows = [row(scope, obj, include, accept.as_version) for obj in objects]
        if scope.store is not None and list_meta is not None:
            scope.store.strategy.complete_rows(rows, objects)
        meta = list_meta if list_meta is not None else _single_list_meta(objects[0])
        return {
            "kind": "Table",
            "apiVersion": api_version,
            "metadata": meta,
            "columnDefinitions": scope.columns,
            # Some of upstream's table convertors, as the default one, have no rows at all for an empty list.
            "rows": rows if rows or (scope.row is not None and not _has_null_rows(scope)) else None,
        }
    is_list = list_meta is not None
    if is_list != (accept.as_kind == "PartialObjectMetadataList"):
        raise scope.dialect.not_in_form(accept.as_kind, scope, is_list)
    if not is_list:
        return partial_object(scope, objects[0], accept.as_version)
    items = [partial_object(scope, obj, accept.as_version) for obj in objects]
    # Upstream's list of none is no list.
    return {"kind": accept.as_kind, "apiVersion": api_version, "metadata": list_meta, "items": items or None}


def _has_null_rows(scope: RequestScope) -> bool:
    return scope.store is not None and scope.store.strategy.null_rows


def include_object(request: Request) -> str:
    wanted = request.param("includeObject") or "Metadata"
    if wanted not in _INCLUDE_OBJECT:
        error = field.invalid("includeObject", wanted, "must be 'Metadata', 'Object', 'None', or empty")
        raise new_bad_request(f"Unable to convert to Table as requested: {error}")
    return wanted


def row(scope: RequestScope, obj: Object, include: str, version: str = "v1") -> Object:
    cells = scope.row(obj, scope.clock.now()) if scope.row is not None else None
    if cells is None:
        cells = _generic_cells(obj)
    shown: Object = {"cells": cells}
    if scope.store is not None and (conditions := scope.store.strategy.table_conditions(obj)):
        shown["conditions"] = conditions
    if include == "Object":
        shown["object"] = scope.kind.arrange(scope.served_version(obj))
    elif include == "Metadata":
        shown["object"] = partial_object(scope, obj, version)
    else:
        shown["object"] = None
    return shown


def _generic_cells(obj: Object) -> list[object]:
    meta = metadata(obj)
    return [meta.get("name", ""), meta.get("creationTimestamp") or _ZERO_TIME]


def partial_object(scope: RequestScope, obj: Object, version: str = "v1") -> Object:
    return scope.partial(version).of(obj)


def _single_list_meta(obj: Object) -> Object:
    version = metadata(obj).get("resourceVersion")
    return {"resourceVersion": version} if version else {}
