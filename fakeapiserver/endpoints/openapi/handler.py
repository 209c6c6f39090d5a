"""/openapi/v3, its documents by group version, and /openapi/v2, each in the forms that clients ask for.

Upstream: k8s.io/kube-openapi/pkg/{handler,handler3}/handler.go, k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.endpoints.discovery import DocumentCache
from fakeapiserver.endpoints.negotiation import accept
from fakeapiserver.endpoints.negotiation.content import Content, compressed, http_date, in_turns, served
from fakeapiserver.endpoints.openapi import protobuf, v2
from fakeapiserver.endpoints.openapi.documents import OpenAPI
from fakeapiserver.endpoints.openapi.merge import merged
from fakeapiserver.endpoints.request import Request, Response

INDEX_MEDIA_TYPE: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
YEAR: Final = 365 * 24 * 3600.0
_VARY: Final = (b"vary", b"Accept")
_HASH: Final = re.compile("[0-9A-F]{128}")


def _media_type(clauses: Sequence[accept.Clause], version: str) -> str:
    """Returns the media type for the client:

    JSON or protobuf, which has an older name too; "" if neither is accepted.
    """
    name = f"application/com.github.proto-openapi.spec.{version}"
    forms = {
        JSON: JSON,
        f"{name}.v1.0+protobuf": f"{name}.v1.0+protobuf",
        f"{name}@v1.0+protobuf": f"{name}.v1.0+protobuf",
    }
    return next((given for clause in clauses for asked, given in forms.items() if clause.takes(asked)), "")


class _Dated(NamedTuple):
    """Bytes, their hash, and when they came to be (seconds since the epoch)."""

    body: bytes
    digest: str
    modified: float


class OpenAPIHandler:
    """`now` gives seconds since the epoch; `cbor` is OpenAPI's. `is_shared`: clients may have read the index of another server, which
    describes the same in other words: such an address isn't redirected, since both servers would do so in turn."""

    def __init__(
        self, table: ResourceTable, now: Callable[[], float], *, cbor: bool = False, is_shared: bool = False
    ) -> None:
        self._is_shared = is_shared
        self._openapi = OpenAPI(table, cbor=cbor)
        self._whole = v2.Version2(table, self._openapi)
        self._now = now
        self._cache = DocumentCache(table)
        self._dated: dict[str, _Dated] = {}
        # Documents' messages with their hashes.
        self._messages: dict[str, tuple[str, bytes]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._index_shown = 0.0

    async def answer(self, request: Request) -> Response | None:
        """Returns the answer, or None for a path outside of OpenAPI."""
        version, slash, key = request.path.removeprefix("/openapi/").partition("/")
        if version == "v2" and not slash:
            return await self._version_2(request)
        if version != "v3":
            return None
        if not slash:
            await in_turns(self._openapi.prepare())
            index = self._cache.get("index", self._build_index)
            # Upstream puts it together for each request, so it is always as new as the request.
            self._index_shown = max(self._now(), index.modified)
            return await served(request, Content(index.body, INDEX_MEDIA_TYPE, self._index_shown))
        return await self._version_3(request, key)

    def _build_index(self) -> _Dated:
        for kept in (self._dated, self._messages):
            for key in kept.keys() - {"v2", *self._openapi.listed()}:
                del kept[key]
        # The index has no ETag: a change within the second that a client knows must have a second of its own.
        return _Dated(self._openapi.index(), "", self._index_shown + 1)

    async def _version_3(self, request: Request, key: str) -> Response:
        document = self._openapi.document(key)
        if document is None:
            return Response(404, b"", "")
        clauses = accept.parse(request.header(b"accept") or "*/*")
        if not clauses:
            return Response(200, b"", "")
        media_type = _media_type(clauses, "v3")
        if not media_type:
            return Response(406, b"", "", [_VARY])
        body, digest = document
        asked = request.param("hash")
        if asked and asked != digest and not (self._is_shared and _HASH.fullmatch(asked)):
            place = f"/openapi/v3/{key}?hash={digest}".encode()
            return Response(301, b"", media_type, [(b"etag", f'"{digest}"'.encode()), (b"location", place), _VARY])
        headers = [_VARY]
        if asked == digest:
            # A document asked for by its hash never changes.
            expires = http_date(self._now() + YEAR).replace("GMT", "UTC").encode()
            headers.append((b"expires", expires))
        dated = self._date(key, body, digest)
        if media_type != JSON:
            body = await self._as_protobuf("v3", key, dated)
        response = await served(request, Content(body, media_type, dated.modified, f'"{digest}"', headers))
        if asked == digest:
            response.cache_control = b"public, immutable"
        return response

    def _date(self, key: str, body: bytes, digest: str) -> _Dated:
        """When this content of the document was first asked for."""
        known = self._dated.get(key)
        if known is None or known.digest != digest:
            known = self._dated[key] = _Dated(body, digest, self._now())
        return known

    async def _version_2(self, request: Request) -> Response:
        media_type = _media_type(accept.parse(request.header(b"accept") or "*/*"), "v2")
        if not media_type:
            return await compressed(request, Response(406, b"", "", [_VARY]))
        # The document's hash is made from those of version 3.
        await in_turns(self._openapi.prepare())
        if self._openapi.table.remote_openapi_v2:
            built = self._cache.get("v2", self._build_merged)
            body = built.body if media_type == JSON else await self._as_protobuf("v2", "v2", built)
        else:
            as_protobuf = media_type != JSON
            async with self._one_at_a_time:
                await in_turns(self._whole.prepare(as_protobuf=as_protobuf))
            body = self._cache.get(("v2", as_protobuf), partial(self._whole.body, as_protobuf=as_protobuf))
            built = self._date("v2", b"", self._openapi.digest())
        content = Content(body, media_type, built.modified, f'"{built.digest}"', [_VARY])
        return await compressed(request, await served(request, content))

    async def _as_protobuf(self, version: str, key: str, built: _Dated) -> bytes:
        """The document's message, kept until another takes its place. It may be of any size: another thread makes it."""
        known = self._messages.get(key)
        if known is None or known[0] != built.digest:
            encode = protobuf.encoder(version)
            message = await asyncio.to_thread(lambda: encode(msgspec.json.decode(built.body)))
            known = self._messages[key] = (built.digest, message)
        return known[1]

    def _build_merged(self) -> _Dated:
        """With the documents of other servers."""
        document = self._whole.document()
        for other in self._openapi.table.remote_openapi_v2:
            document = merged(document, other)
        body = json.encode(document)
        return _Dated(body, hashlib.sha512(body).hexdigest().upper(), self._now())
