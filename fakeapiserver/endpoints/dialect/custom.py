"""Custom resources: one handler for all paths, objects that are maps.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.apimachinery.errors import (
    new_generic_not_found,
    new_method_not_supported,
    new_not_found,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import Arrange, arrangement
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.dialect.builtin import not_acceptable, unknown_patch_type
from fakeapiserver.endpoints.dialect.interface import Patched
from fakeapiserver.endpoints.dialect.routes import handler_of, is_served_path, warn
from fakeapiserver.endpoints.negotiation.body import Body
from fakeapiserver.endpoints.negotiation.custom_body import decode_custom
from fakeapiserver.endpoints.negotiation.media_types import (
    CBOR,
    PROTOBUF,
    Accept,
    body_media_type,
    negotiate,
    unknown_format,
)
from fakeapiserver.endpoints.request import Answered, Request, Response
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.endpoints.subresources import scale_rules, subresource
from fakeapiserver.endpoints.verbs import custom_patched
from fakeapiserver.registry.generic.canonical import TypePrefix
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.endpoints.scope import RequestScope
    from fakeapiserver.endpoints.scopes import RequestScopes
    from fakeapiserver.endpoints.subresources.scale_rules import ScaleRules
    from fakeapiserver.endpoints.verbs.patch_types import PatchType

# No strategic merge patch, which needs Go types.
_PATCH_TYPES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_APPLY_CBOR: Final = "application/apply-patch+cbor"
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class CustomDialect:
    always_has_tables: Final = True
    settles_unchanged: Final = False
    shows_shards: Final = False

    # ------------------------------------------------------------- routes

    def route(self, request: Request, scope: "RequestScope", scopes: "RequestScopes") -> Awaitable[Response]:
        info, resource = request.info, scope.resource
        if not _is_in_scope(info, scope):
            raise Answered(respond.text(404, "404 page not found\n"))
        lacks_subresource = bool(info.subresource) and info.subresource not in resource.subresources
        if not lacks_subresource and not is_served_path(info, scope):
            raise new_generic_not_found()
        if resource.deprecation:
            warn(request, scopes, resource.deprecation, "")
        if lacks_subresource:
            raise new_not_found(resource.gvr.group_resource, info.name)
        if info.subresource:
            request.supported = scopes.media_types
            return subresource.subresource(request, scope, scopes)
        handler = handler_of(info.verb)
        if handler is None:
            raise new_method_not_supported(resource.gvr.group_resource, info.verb)
        request.supported = scopes.media_types
        return handler(request, scope)

    def check_subresource_verb(self, request: Request, scope: "RequestScope") -> None:
        info = request.info
        if info.verb not in scope.resource.subresources[info.subresource].verbs:
            raise new_method_not_supported(scope.resource.gvr.group_resource, info.verb)

    # -------------------------------------------------------- negotiation

    def negotiate(self, header: str, produced: tuple[str, ...], supported: tuple[str, ...], tables: bool) -> Accept:
        return negotiate(header, produced, True, supported, tables)

    def object_media_type(self, request: Request) -> str:
        media_type = body_media_type(request.header(b"content-type"), request.supported)
        if media_type == PROTOBUF:
            raise unknown_format([supported for supported in request.supported if supported != PROTOBUF])
        return media_type

    def decode(self, body: Body) -> Object:
        return decode_custom(body)

    # ------------------------------------------------------------ patches

    def patch_types(self, supported: tuple[str, ...]) -> list[str]:
        return [*_PATCH_TYPES, _APPLY_CBOR] if CBOR in supported else [*_PATCH_TYPES]

    def wrong_patch_type(self, request: Request, allowed: list[str]) -> Exception:
        return unknown_patch_type(allowed)

    def patched(self, change: "PatchType", current: Object, scope: "RequestScope") -> Patched:
        return custom_patched.CustomPatched(change, current, scope)

    @property
    def scale(self) -> "ScaleRules":
        return scale_rules.CUSTOM

    # -------------------------------------------------------------- forms

    def type_prefix(self, gvk: GroupVersionKind) -> TypePrefix:
        return TypePrefix(gvk, custom=True)

    def is_converted(self, gvk: GroupVersionKind, stored: GroupVersionKind) -> bool:
        return True

    def items(self, values: list[bytes], prefix: TypePrefix) -> bytes:
        return prefix.added_to_all(values) if values else b""

    def listing(self, api_version: bytes, kind: bytes, meta: Object, items: bytes) -> bytes:
        """All keys are sorted, and there is always a `continue`."""
        meta.setdefault("continue", "")
        parts = (b'{"apiVersion":', api_version, b',"items":[', items, b'],"kind":', kind, b',"metadata":')
        return b"".join((*parts, json.encode_sorted(meta), b"}\n"))

    def shown_version(self, gvk: GroupVersionKind) -> GroupVersionKind | None:
        return gvk

    def bookmark(self, scope: "RequestScope") -> Object:
        return {"kind": scope.gvk.kind, "apiVersion": str(scope.gvk.group_version)}

    def served_version(self, obj: Object, scope: "RequestScope") -> Object:
        return obj

    def partial_rules(self, scope: "RequestScope") -> "tuple[Callable[[bytes], bytes] | None, Arrange | None]":
        return scope.restored, arrangement(scope.kind.definitions, _OBJECT_META, field_order)

    def cbor_shape(self, kind: Kind) -> Any:
        return None

    # -------------------------------------------------------------- words

    def unknown_field(self, name: str, scope: "RequestScope") -> str:
        assert scope.store is not None
        return scope.store.strategy.unknown_field.format(name, quoted=go_quote(name), kind=scope.gvk)

    def not_in_form(self, wanted: str, scope: "RequestScope", is_list: bool) -> Exception:
        if not is_list:
            return status_error(500, "", "content is not a list")  # upstream takes every custom resource for one
        return not_acceptable(wanted, "unstructured.UnstructuredList", is_list)


def _is_in_scope(info: RequestInfo, scope: "RequestScope") -> bool:
    """Reports whether a path has a namespace if and only if the resource is namespaced, except when it is read across all namespaces."""
    if scope.resource.namespaced:
        return bool(info.namespace) or info.verb in ("list", "watch")
    return not info.namespace


CUSTOM: Final = CustomDialect()
