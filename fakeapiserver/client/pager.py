"""Long lists, a page at a time (upstream: k8s.io/client-go/tools/pager)."""

from collections.abc import AsyncGenerator, Iterator
from typing import Protocol, Unpack, cast

import msgspec

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.client.dynamic import ListOptions, ListShape, RawList
from fakeapiserver.client.errors import StatusError, is_expired, is_gone

__all__ = ["PAGE_SIZE", "Lister", "Object", "decode_items", "each_item", "items", "pages", "whole"]

PAGE_SIZE = 500


class Lister(Protocol):
    """A resource that can be listed, e.g. a dynamic.ResourceClient."""

    async def list_raw(self, **options: Unpack[ListOptions]) -> RawList:
        """A list, or a page of it."""


async def pages(
    lister: Lister, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]
) -> AsyncGenerator[ListShape, None]:
    """The pages of one consistent list. `page_size` 0 asks for everything at once.

    A continue token that is too old ends the list with StatusError (410): what came so far is of a past state.
    """
    wanted = ListOptions(**options, limit=page_size) if page_size else options
    while True:
        page = (await lister.list_raw(**wanted)).split()
        yield page
        if not page.metadata.continue_:
            return
        # a page that goes on is of the first page's revision, and may not name one
        wanted = ListOptions(**wanted)
        wanted.pop("resource_version", None)
        wanted.pop("resource_version_match", None)
        wanted["continue_"] = page.metadata.continue_


async def whole(lister: Lister, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]) -> ListShape:
    """The list in one. When a page's token is too old, everything is asked for once more, without pages."""
    items: list[msgspec.Raw] = []
    first: ListShape | None = None
    try:
        async for page in pages(lister, page_size, **options):
            first = first or page
            items += page.items or ()
    except StatusError as error:
        if first is None or not (is_expired(error) or is_gone(error)):
            raise
        everything = cast(
            "ListOptions", {key: value for key, value in options.items() if key != "resource_version_match"}
        )
        return (await lister.list_raw(**everything)).split()
    assert first is not None
    return ListShape(first.api_version, first.kind, page.metadata, items)


async def each_item(
    lister: Lister, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]
) -> AsyncGenerator[Object, None]:
    """The objects of all pages."""
    async for page in pages(lister, page_size, **options):
        for obj in decode_items(page):
            yield obj


def items(page: ListShape) -> Iterator[Object]:
    """Yields the objects of a page, each with the apiVersion and kind that lists of built-in kinds leave out.

    Objects are decoded one by one. Raises ValueError for an item that is no object.
    """
    kind = page.kind.removesuffix("List")
    for raw in page.items or ():
        obj = json.decode_plainly(bytes(raw))
        if not isinstance(obj, dict):
            raise ValueError("an item of the list is no object")
        yield {"apiVersion": page.api_version, "kind": kind, **obj} if kind and "kind" not in obj else obj


def decode_items(page: ListShape) -> list[Object]:
    """All of them."""
    return [*items(page)]
