"""Built-in resources: routes of go-restful's, typed objects.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go.
"""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_generic_method_not_allowed,
    new_generic_not_found,
    new_method_not_supported,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.cbor import shapes
from fakeapiserver.apimachinery.schema.key_order import Arrange
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis import conversion
from fakeapiserver.endpoints import componentstatus, respond
from fakeapiserver.endpoints.dialect.interface import Patched
from fakeapiserver.endpoints.dialect.routes import handler_of, is_served_path, warn
from fakeapiserver.endpoints.negotiation.body import Body
from fakeapiserver.endpoints.negotiation.builtin_body import decode_builtin
from fakeapiserver.endpoints.negotiation.media_types import (
    CBOR,
    Accept,
    body_media_type,
    check_route,
    negotiate,
    takes_body_type,
)
from fakeapiserver.endpoints.negotiation.type_meta import internal_package
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.endpoints.subresources import binding, scale_rules, subresource
from fakeapiserver.endpoints.verbs import builtin_patched
from fakeapiserver.registry.generic.canonical import TypePrefix
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.endpoints.scope import RequestScope
    from fakeapiserver.endpoints.scopes import RequestScopes
    from fakeapiserver.endpoints.subresources.scale_rules import ScaleRules
    from fakeapiserver.endpoints.verbs.patch_types import PatchType

_REMOVED_IN: Final = re.compile(r"unavailable in v([0-9]+\.[0-9]+)").search
_PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_APPLY_CBOR: Final = "application/apply-patch+cbor"
# Resources with handlers of their own: one that is only written, and one that is only read.
_BINDINGS: Final = GroupResource("", "bindings")
_COMPONENT_STATUSES: Final = GroupResource("", "componentstatuses")
# Verbs of a collection; all others concern one object.
_COLLECTION: Final = frozenset(("list", "watch", "create", "deletecollection"))


class BuiltinDialect:
    always_has_tables: Final = False
    settles_unchanged: Final = True
    shows_shards: Final = True

    # ------------------------------------------------------------- routes

    def route(self, request: Request, scope: "RequestScope", scopes: "RequestScopes") -> Awaitable[Response]:
        info = request.info
        if not _has_path(info, scope):
            raise new_generic_not_found()
        # A watch of a resource that can only be listed has the list's route.
        only_listed = info.verb == "watch" and "list" in scope.resource.verbs and "watch" not in scope.resource.verbs
        listed = only_listed and request.method == "GET" and not info.watch_path
        # Upstream warns in the routes, so a verb without a route has no warning.
        if (warning := scope.resource.deprecation) and self._is_routed(request, scope, scopes.media_types, listed):
            removed = _REMOVED_IN(warning)
            warn(request, scopes, warning, removed[1] if removed else "")
        if info.subresource:
            request.supported = scopes.media_types
            return subresource.subresource(request, scope, scopes)
        if only_listed:
            if info.watch_path:
                raise new_generic_not_found()
            if request.method == "GET":
                respond.accepted(request, scope)
            raise new_method_not_supported(scope.resource.gvr.group_resource, info.verb)
        handler = handler_of(info.verb)
        if handler is None or not _has_verb(request, scope):
            raise new_generic_method_not_allowed()
        # Upstream sends the errors above without the resource's own media types.
        request.supported = scopes.media_types
        if scope.resource.gvr.group_resource == _BINDINGS:
            return binding.bind(request, scope, scopes)
        if scope.resource.gvr.group_resource == _COMPONENT_STATUSES:
            return componentstatus.read(request, scope)
        return handler(request, scope)

    def _is_routed(self, request: Request, scope: "RequestScope", supported: tuple[str, ...], listed: bool) -> bool:
        """Reports whether upstream's router finds a route for the method and the media types."""
        if not listed and not _has_verb(request, scope):
            return False
        content_type = request.header(b"content-type")
        if request.info.verb == "patch" and not takes_body_type(content_type, self.patch_types(supported)):
            return False
        try:
            check_route(request.header(b"accept"), respond.produced(request, supported))
        except StatusError:
            return False
        return True

    def check_subresource_verb(self, request: Request, scope: "RequestScope") -> None:
        info = request.info
        is_proxy = info.subresource == "proxy"
        is_verb = info.verb in scope.resource.subresources[info.subresource].verbs
        if not (is_verb or (is_proxy and request.method == "OPTIONS")) or (request.method == "HEAD" and not is_proxy):
            raise new_generic_method_not_allowed()

    # -------------------------------------------------------- negotiation

    def negotiate(self, header: str, produced: tuple[str, ...], supported: tuple[str, ...], tables: bool) -> Accept:
        return negotiate(header, produced, False, supported, tables)

    def object_media_type(self, request: Request) -> str:
        return body_media_type(request.header(b"content-type"), request.supported)

    def decode(self, body: Body) -> Object:
        return decode_builtin(body)

    # ------------------------------------------------------------ patches

    def patch_types(self, supported: tuple[str, ...]) -> list[str]:
        return [*_PATCH_TYPES, _APPLY_CBOR] if CBOR in supported else [*_PATCH_TYPES]

    def wrong_patch_type(self, request: Request, allowed: list[str]) -> Exception:
        # The router accepts what the handler doesn't know: surrounding spaces, and lists.
        if takes_body_type(request.header(b"content-type"), allowed):
            return unknown_patch_type(allowed)
        # The router doesn't know the resource's media types.
        request.supported = request.general
        return status_error(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})

    def patched(self, change: "PatchType", current: Object, scope: "RequestScope") -> Patched:
        return builtin_patched.BuiltinPatched(change, current, scope.kind)

    @property
    def scale(self) -> "ScaleRules":
        return scale_rules.BUILTIN

    # -------------------------------------------------------------- forms

    def type_prefix(self, gvk: GroupVersionKind) -> TypePrefix:
        return TypePrefix(gvk, custom=False)

    def is_converted(self, gvk: GroupVersionKind, stored: GroupVersionKind) -> bool:
        return not conversion.alike(gvk, stored)

    def items(self, values: list[bytes], prefix: TypePrefix) -> bytes:
        """Without types."""
        return b",".join(values)

    def listing(self, api_version: bytes, kind: bytes, meta: Object, items: bytes) -> bytes:
        head = (b'{"kind":', kind, b',"apiVersion":', api_version, b',"metadata":')
        return b"".join((*head, json.encode(meta), b',"items":[', items, b"]}\n"))

    def shown_version(self, gvk: GroupVersionKind) -> GroupVersionKind | None:
        """The stored version resembles the internal one that upstream uses there."""
        return None

    def bookmark(self, scope: "RequestScope") -> Object:
        assert scope.store is not None
        gvk = scope.store.gvk if scope.converted else scope.gvk
        obj: Object = {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
        scope.store.versions.kind_in(obj["apiVersion"]).decode(obj)
        return obj

    def served_version(self, obj: Object, scope: "RequestScope") -> Object:
        return obj if scope.store is None else scope.store.versions.converted(obj, scope.gvk)

    def partial_rules(self, scope: "RequestScope") -> "tuple[Callable[[bytes], bytes] | None, Arrange | None]":
        return None, None

    def cbor_shape(self, kind: Kind) -> Any:
        return shapes.shape_of(kind.definitions, kind.definition_name)

    # -------------------------------------------------------------- words

    def unknown_field(self, name: str, scope: "RequestScope") -> str:
        assert scope.store is not None
        if scope.store.strategy.selectable_fields:
            return scope.store.strategy.unknown_field.format(name, quoted=go_quote(name), kind=scope.gvk)
        return f'{go_quote(name)} is not a known field selector: only "metadata.name", "metadata.namespace"'

    def not_in_form(self, wanted: str, scope: "RequestScope", is_list: bool) -> Exception:
        kind = scope.list_kind if is_list else scope.gvk.kind
        return not_acceptable(wanted, f"{internal_package(scope.gvk.group)}.{kind}", is_list)


def unknown_patch_type(allowed: list[str]) -> StatusError:
    named = ", ".join(allowed)
    message = f"the body of the request was in an unknown format - accepted media types include: {named}"
    return status_error(415, "UnsupportedMediaType", message)


def not_acceptable(wanted: str, go_type: str, is_list: bool) -> StatusError:
    """406, with the Go type that upstream has at hand."""
    is_what = "a list" if is_list else "not a list"
    message = f"you requested {wanted}, but the requested object is {is_what} (*{go_type})"
    return status_error(406, "NotAcceptable", message)


def _has_path(info: RequestInfo, scope: "RequestScope") -> bool:
    if info.verb == "proxy" or (info.subresource and info.verb == "watch"):
        return False
    return is_served_path(info, scope)


def _has_verb(request: Request, scope: "RequestScope") -> bool:
    """Reports whether the resource has a route for the verb."""
    info, verbs = request.info, scope.resource.verbs
    if request.method == "HEAD" or info.verb not in verbs or (info.verb == "watch" and request.method != "GET"):
        return False
    if info.verb in _COLLECTION:
        if info.named_path and info.verb == "create":
            return False
        crosses_namespaces = scope.resource.namespaced and not info.namespace
        return not (crosses_namespaces and info.verb in ("create", "deletecollection"))
    return bool(info.name)


BUILTIN: Final = BuiltinDialect()
