"""A request of a client and its answer, as `cluster.requests` shows them. Bodies are decoded when they are asked for."""

import re
from collections.abc import Iterator
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.serializer import cbor, protobuf, yaml
from fakeapiserver.apis import protobuf as messages
from fakeapiserver.storage.interface import Compacted, StoredObject


class History(Protocol):
    """The part of a storage that knows former states."""

    def changes_now(self, revision: int) -> Iterator[tuple[StoredObject | None, StoredObject | None]]:
        """Yields the former and the new state of each object that was written after `revision`. Raises Compacted."""


class RequestEntry(Struct, frozen=True):
    """A request and what became of it.

    - `time`: when it began, in seconds since the Unix epoch by the cluster's clock. `duration`: seconds until the answer began.
    - `verb`: the API verb (get, list, watch, create, update, patch, delete, deletecollection), or the method in lower case if the
      path names no resource.
    - `name`: the name of the object; for a create that of the created object. `generate_name`: its part that was not
      generated; else empty.
    - `patch_type`: the media type of a patch, e.g. application/apply-patch+yaml; else empty.
    - `user`, `groups`: the authenticated user, after impersonation; system:anonymous if authentication failed.
    - `status`: the HTTP status; 0 if the connection ended before there was an answer.
    - `fault`: the faults that struck the request (`cluster.faults`); else empty.
    - `warnings`: the texts of the answer's Warning headers.
    - `seq`: the number of the entry in its log; later answers have higher ones.
    - `reason`, `message`: those of the refusal, e.g. Conflict; empty for successful requests and, the message, for secrets.
    - `query`: as it was sent; empty for secrets and for commands in pods.
    - `revision`: the resourceVersion of the object or list in the answer; 0 without one.
    - `changed`: whether a write changed the object; False for reads, dry runs and refusals.
    - `connection`: the client's `address:port`.
    - `request_bytes`, `response_bytes`: the sizes of the bodies, of refusals as JSON; of a watch's answer 0.
    - `events`: how many events a watch has sent, bookmarks included. `ended`: how it ended: `time` (its own), `client`, `server`
      (an outage, a fault, or it fell behind), `error` (its last event is an error), `cut`; empty while it is open.
    """

    time: float
    duration: float
    method: str
    path: str
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    patch_type: str
    user: str
    user_agent: str
    status: int
    reason: str = ""
    message: str = ""
    fault: str = ""
    seq: int = 0
    query: str = ""
    dry_run: bool = False
    revision: int = 0
    changed: bool = False
    connection: str = ""
    request_bytes: int = 0
    response_bytes: int = 0
    events: int = 0
    ended: str = ""
    generate_name: str = ""
    groups: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    content: "Content | None" = None

    @property
    def uri(self) -> str:
        """The path with the query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def refused(self) -> bool:
        """Reports whether the status is 400 or more."""
        return self.status >= 400

    @property
    def body(self) -> Any:
        """The decoded body of the request; None without one, for secrets, and for a body that is no longer kept."""
        return _decoded(self.content.request, self.content.request_type) if self.content is not None else None

    @property
    def answer(self) -> Any:
        """The decoded body of the answer; None as for `body`."""
        return _decoded(self.content.response, self.content.response_type) if self.content is not None else None

    @property
    def before(self) -> Any:
        """The stored object before the write; None for a create, for a request that changed nothing, for secrets, and once the server's
        history has forgotten the write."""
        return self._states[0]

    @property
    def after(self) -> Any:
        """The stored object after the write; None for a delete and as for `before`."""
        return self._states[1]

    @property
    def _states(self) -> tuple[Any, Any]:
        content = self.content
        if content is None or not self.changed:
            return None, None
        try:
            for former, new in content.history.changes_now(self.revision - 1 if self.revision else content.began_at):
                if _is_of(self, content, former, new):
                    return _state(former), _state(new)
        except Compacted:
            pass
        return None, None

    def __repr__(self) -> str:
        return f"<{self.verb} {self.path} {self.status} {self.reason}>".replace(" >", ">")


class Content(Struct, frozen=True):
    """The bodies of a request and its answer, as bytes that were there anyway, and the history of the storage. `began_at` is the newest
    revision when the request began, `uid` that of a deleted object."""

    request: bytes
    request_type: str
    response: bytes
    response_type: str
    history: History
    began_at: int
    uid: str = ""


def _is_of(entry: RequestEntry, content: Content, former: StoredObject | None, new: StoredObject | None) -> bool:
    if not content.uid:
        return new is not None and new.mod_revision == entry.revision
    return new is None and former is not None and former.index.uid == content.uid


def _state(stored: StoredObject | None) -> Any:
    return msgspec.json.decode(stored.value) if stored is not None else None


def _decoded(data: bytes, content_type: str) -> Any:
    media_type = content_type.partition(";")[0].strip()
    if not data:
        return None
    try:
        if data.startswith(_PROTOBUF):
            return protobuf.decode(data, messages.message_finder(), messages.decoder())
        if media_type.endswith("yaml"):
            return yaml.decode(data)
        return cbor.decode_map(data) if media_type.endswith("cbor") else msgspec.json.decode(data)
    except ValueError:
        return None


# ------------------------------------------------------------------ heads of answers


class _Meta(Struct):
    name: str = ""
    generateName: str = ""  # noqa: N815
    resourceVersion: str = ""  # noqa: N815
    uid: str = ""
    deletionTimestamp: str | None = None  # noqa: N815
    deletionGracePeriodSeconds: int | None = None  # noqa: N815
    finalizers: list[str] | None = None


class _Details(Struct):
    uid: str = ""


class _Head(Struct):
    kind: str = ""
    reason: str = ""
    message: str = ""
    metadata: _Meta | None = None
    details: _Details | None = None


class Head(Struct, frozen=True):
    """The first facts of an answer: the object's name, generateName and resourceVersion, a refusal's reason and message, a deleted
    object's uid.

    `gone`: nothing holds the object any more, so that the write has deleted it."""

    name: str = ""
    generate_name: str = ""
    revision: int = 0
    reason: str = ""
    message: str = ""
    uid: str = ""
    gone: bool = False


_NO_HEAD: Final = Head()
_PROTOBUF: Final = b"k8s\x00"
# Fields of ObjectMeta.
_UID, _DELETION_TIMESTAMP, _GRACE, _FINALIZERS = 5, 9, 10, 14
_decoder: Final = msgspec.json.Decoder(_Head)
# In the beginning of a long list, the rest of which isn't kept.
_LIST_REVISION: Final = re.compile(rb'"metadata":\{"resourceVersion":"(\d+)"').search


def head(data: bytes) -> Head:
    """Reads the head of an answer in JSON or protobuf; empty for any other."""
    try:
        if data.startswith(_PROTOBUF):
            return _protobuf_head(data)
        found = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, IndexError):
        of_list = _LIST_REVISION(data)
        return Head(revision=int(of_list[1])) if of_list else _NO_HEAD
    meta, details = found.metadata or _Meta(), found.details or _Details()
    revision = int(meta.resourceVersion) if meta.resourceVersion.isdecimal() else 0
    is_status = found.kind == "Status"
    gone = bool(meta.deletionTimestamp) and not meta.finalizers and not meta.deletionGracePeriodSeconds
    uid = details.uid or meta.uid * gone
    return Head(
        meta.name,
        meta.generateName,
        revision,
        found.reason if is_status else "",
        found.message if is_status else "",
        uid,
        gone,
    )


def _protobuf_head(data: bytes) -> Head:
    """Reads ObjectMeta (name 1, generateName 2, resourceVersion 6), or ListMeta (resourceVersion 2), which is field 1 of each object."""
    unknown = dict(_fields(data[len(_PROTOBUF) :]))
    kind = dict(_fields(unknown.get(1, b""))).get(2, b"").decode()
    meta = dict(_fields(dict(_fields(unknown.get(2, b""))).get(1, b"")))
    is_list = kind.endswith("List")
    revision = meta.get(2 if is_list else 6, b"").decode()
    number = int(revision) if revision.isdecimal() else 0
    if is_list:
        return Head(revision=number)
    gone = _DELETION_TIMESTAMP in meta and _FINALIZERS not in meta and not meta.get(_GRACE)
    name, generate_name = (meta.get(field, b"").decode() for field in (1, 2))
    return Head(name, generate_name, number, uid=meta.get(_UID, b"").decode() if gone else "", gone=gone)


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the fields of a message up to one of fixed size, which metadata doesn't have; numbers as no or some bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, b"\1" * (value > 0)
        elif tag & 7 == 2:
            size, at = _varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
