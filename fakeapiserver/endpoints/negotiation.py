"""Which media type a client gets, and which it sent.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError, new_unsupported_media_type, status_error

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
# Bodies may be protobuf; answers are not yet, so it is never chosen for them.
_SUPPORTED: Final = (JSON, YAML)
_NAMED: Final = ", ".join((*_SUPPORTED, PROTOBUF))
_WATCH_NAMED: Final = f", {JSON};stream=watch, {PROTOBUF};stream=watch"
_CONVERSIONS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@dataclass(frozen=True, slots=True)
class Accept:
    """The chosen media type. `as_kind` is `Table`, `PartialObjectMetadata` or `PartialObjectMetadataList` of
    meta.k8s.io/`as_version` where the client asked for that form, else empty."""

    media_type: str = JSON
    as_kind: str = ""
    as_version: str = ""
    pretty: bool = False


PLAIN: Final = Accept()


@lru_cache(maxsize=1024)
def negotiate(header: str, watchable: bool = False) -> Accept:
    """The first acceptable clause, best quality first; StatusError 406 when none is."""
    if not header or header in (JSON, "*/*"):
        return PLAIN
    clauses = _clauses(header)
    for clause in clauses:
        accepted = _accept(clause)
        if accepted is not None:
            return accepted
    if any(clause[""] in _SUPPORTED for clause in clauses):
        raise _no_such_form()
    raise not_acceptable(watchable)


def not_acceptable(watchable: bool = False) -> StatusError:
    """`watchable` for collections, which can be watched in forms of their own."""
    named = _NAMED + (_WATCH_NAMED if watchable else "")
    message = f"406: Not Acceptable\n\nAvailable representations: {named}"
    return status_error(406, "NotAcceptable", message, {})


def _no_such_form() -> StatusError:
    """A media type that is served, in a form that isn't."""
    return status_error(406, "NotAcceptable", f"only the following media types are accepted: {_NAMED}")


def _clauses(header: str) -> list[dict[str, str]]:
    clauses = []
    for part in header.split(","):
        media, *parameters = [piece.strip() for piece in part.split(";")]
        clause = {"": media}
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            clause[key.strip()] = value.strip().strip('"')
        clauses.append(clause)
    return sorted(clauses, key=_quality, reverse=True)


def _quality(clause: dict[str, str]) -> float:
    try:
        return float(clause.get("q", "1"))
    except ValueError:
        return 1.0


def _accept(clause: dict[str, str]) -> Accept | None:
    media = clause[""]
    if media == "*/*":
        media = JSON
    if media not in _SUPPORTED:
        return None
    kind = clause.get("as", "")
    if kind:
        version = clause.get("v", "")
        if kind not in _CONVERSIONS or clause.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
            return None
        return Accept(media, kind, version)
    return Accept(media, pretty=clause.get("pretty", "") not in ("", "0", "false"))


@lru_cache(maxsize=256)
def body_media_type(header: str) -> str:
    """The media type of a request's body: JSON where none is named, StatusError 415 for one that nobody decodes."""
    media = header.partition(";")[0].strip().lower()
    if not media:
        return JSON
    if media not in (*_SUPPORTED, PROTOBUF):
        raise unknown_format((*_SUPPORTED, PROTOBUF))
    return media


def unknown_format(accepted: Sequence[str]) -> StatusError:
    named = ", ".join(accepted)
    return new_unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {named}"
    )
