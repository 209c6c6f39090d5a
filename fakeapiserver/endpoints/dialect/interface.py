"""Defines what a scope asks of its dialect.

Upstream serves built-in resources through go-restful's routes and typed objects, and custom ones through one handler and maps
(apiextensions-apiserver/pkg/apiserver/customresource_handler.go). The differences that clients see are behind this protocol.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import Arrange
from fakeapiserver.endpoints.negotiation.body import Body
from fakeapiserver.endpoints.negotiation.media_types import Accept
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.registry.generic.canonical import TypePrefix
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.endpoints.scope import RequestScope
    from fakeapiserver.endpoints.scopes import RequestScopes
    from fakeapiserver.endpoints.subresources.scale_rules import ScaleRules
    from fakeapiserver.endpoints.verbs.patch_types import PatchType


class Patched(Protocol):
    """The document that a patch has made of an object."""

    obj: Object

    def decode(self, empties: "Empties") -> list[str]:
        """Brings the document into its kind, in place, with its defaults, and returns the texts of unknown fields. Raises StatusError
        422, which shows the document, if it can't be decoded.
        """

    def invalid(self, why: str) -> Exception:
        """422, which shows the document."""


class Dialect(Protocol):
    # ------------------------------------------------------------- routes

    def route(self, request: Request, scope: "RequestScope", scopes: "RequestScopes") -> Awaitable[Response]:
        """Returns the answer, to be awaited. Raises StatusError 404 and 405 for paths and verbs that aren't served, and Answered for paths
        that Go's mux refuses.
        """

    def check_subresource_verb(self, request: Request, scope: "RequestScope") -> None:
        """Raises StatusError 405 for a verb that the subresource lacks."""

    # -------------------------------------------------------- negotiation

    def negotiate(self, header: str, produced: tuple[str, ...], supported: tuple[str, ...], tables: bool) -> Accept:
        """Returns the form of the answer for an Accept header. Raises StatusError 406."""

    @property
    def always_has_tables(self) -> bool:
        """Reports whether each subresource has a Table."""

    def object_media_type(self, request: Request) -> str:
        """Returns the media type of an object's body. Raises StatusError 415."""

    def decode(self, body: Body) -> Object:
        """Returns the object of a create or update, decoded and defaulted. Raises StatusError 400."""

    # ------------------------------------------------------------ patches

    def patch_types(self, supported: tuple[str, ...]) -> list[str]:
        """Returns the media types of patches for a resource with the media types `supported`."""

    def wrong_patch_type(self, request: Request, allowed: list[str]) -> Exception:
        """415 for a patch of another media type than those allowed."""

    def patched(self, change: "PatchType", current: Object, scope: "RequestScope") -> Patched:
        """Applies a patch."""

    @property
    def settles_unchanged(self) -> bool:
        """Reports whether an apply that changes nothing stores defaults that another version has stored without."""

    @property
    def scale(self) -> "ScaleRules":
        """The rules of the scale subresource."""

    # -------------------------------------------------------------- forms

    def type_prefix(self, gvk: GroupVersionKind) -> TypePrefix:
        """Returns what adds the type to stored forms."""

    def is_converted(self, gvk: GroupVersionKind, stored: GroupVersionKind) -> bool:
        """Reports whether two versions of a kind differ in more than the apiVersion."""

    @property
    def shows_shards(self) -> bool:
        """Reports whether the metadata of lists names the shard that was asked for."""

    def items(self, values: list[bytes], prefix: TypePrefix) -> bytes:
        """Returns objects in the served version as the items of a list, without the brackets."""

    def listing(self, api_version: bytes, kind: bytes, meta: Object, items: bytes) -> bytes:
        """Returns a list in JSON. `api_version` and `kind` are encoded."""

    def shown_version(self, gvk: GroupVersionKind) -> GroupVersionKind | None:
        """Returns the version from which Tables and PartialObjectMetadata are made; None: the stored one."""

    def bookmark(self, scope: "RequestScope") -> Object:
        """Returns the object of a bookmark, without metadata."""

    def served_version(self, obj: Object, scope: "RequestScope") -> Object:
        """Returns an object of `shown_version` in the served version."""

    def partial_rules(self, scope: "RequestScope") -> "tuple[Callable[[bytes], bytes] | None, Arrange | None]":
        """Returns what PartialObjectMetadata needs: a function that brings stored bytes into the served version, or None, and the
        order of metadata's keys, or None if they are stored so.
        """

    def cbor_shape(self, kind: Kind) -> Any:
        """Returns the shape that CBOR gives objects, or None for maps."""

    # -------------------------------------------------------------- words

    def unknown_field(self, name: str, scope: "RequestScope") -> str:
        """Returns the sentence about a field selector's unknown field."""

    def not_in_form(self, wanted: str, scope: "RequestScope", is_list: bool) -> Exception:
        """406 or 500: the object can't be answered as a list, or the list as an object."""
