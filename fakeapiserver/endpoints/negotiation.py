"""Which media type a client gets, and which it sent.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError, new_unsupported_media_type, status_error

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
PROTOBUF_STREAM: Final = PROTOBUF + ";stream=watch"
_SUPPORTED: Final = (JSON, YAML, PROTOBUF)
_NAMED: Final = ", ".join(_SUPPORTED)
_STREAMS_NAMED: Final = f"{JSON};stream=watch, {PROTOBUF_STREAM}"
_META: Final = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")
# What an object may be asked for as -> the group versions of that form.
_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "Table": _META,
    "PartialObjectMetadata": _META,
    "PartialObjectMetadataList": _META,
    "APIGroupDiscoveryList": ("apidiscovery.k8s.io/v2",),
}


@dataclass(frozen=True, slots=True)
class Accept:
    """The chosen media type. `as_kind` is the form the client asked for (`Table`, `PartialObjectMetadata` …), of its group's
    `as_version`; empty for the object itself."""

    media_type: str = JSON
    as_kind: str = ""
    as_version: str = ""
    pretty: bool = False


PLAIN: Final = Accept()


@lru_cache(maxsize=1024)
def negotiate(header: str, watchable: bool = False, custom: bool = False) -> Accept:
    """How a resource is answered: the first acceptable clause, best quality first; StatusError 406 when none is. Custom
    resources have no protobuf form, but their metadata has."""
    if not header or header in (JSON, "*/*"):
        return PLAIN
    clauses = _clauses(header)
    if not custom:
        _route(clauses, watchable)
    for accepted in _accepted(clauses):
        served = not (custom and accepted.media_type == PROTOBUF) if not accepted.as_kind else _is_meta_form(accepted)
        if served:
            return accepted
    raise _only(_NAMED)


@lru_cache(maxsize=256)
def negotiate_document(header: str, routed: bool = False) -> Accept:
    """How discovery is answered: StatusError 406. `routed` for the paths whose documents stand behind upstream's router."""
    if not header:
        return PLAIN
    clauses = _clauses(header)
    if routed:
        _route(clauses, watchable=False)
    for accepted in _accepted(clauses):
        if not accepted.as_kind:
            return accepted
    raise _only(_NAMED)


@lru_cache(maxsize=256)
def negotiate_aggregated(header: str) -> Accept | None:
    """None unless some clause asks for aggregated discovery, whatever stands before it."""
    asked = (accepted for accepted in _accepted(_clauses(header)) if accepted.as_kind == "APIGroupDiscoveryList")
    return next(asked, None)


@lru_cache(maxsize=256)
def negotiate_status(header: str) -> Accept:
    """How a Status is answered: a client that takes no form of it gets indented JSON."""
    if not header:
        return PLAIN
    return next((found for found in _accepted(_clauses(header)) if not found.as_kind), Accept(pretty=True))


def _is_meta_form(accepted: Accept) -> bool:
    if accepted.as_kind == "Table":
        return accepted.media_type != PROTOBUF
    return accepted.as_kind != "APIGroupDiscoveryList"


def _route(clauses: list[dict[str, str]], watchable: bool) -> None:
    """Upstream's router looks first, at media types only: it refuses what nothing built in is served as."""
    if not any(clause[""] in (*_SUPPORTED, "*/*") for clause in clauses):
        raise not_acceptable(f"{_NAMED}, {_STREAMS_NAMED}" if watchable else _NAMED)


def check_json_accepted(header: str) -> None:
    """StatusError 406 for paths that answer JSON only, and stand behind upstream's router."""
    if header and not any(clause[""] in (JSON, "*/*") for clause in _clauses(header)):
        raise not_acceptable(JSON)


def not_acceptable(named: str = _NAMED) -> StatusError:
    """406 in the words of upstream's router."""
    message = f"406: Not Acceptable\n\nAvailable representations: {named}"
    return status_error(406, "NotAcceptable", message, {})


def not_streamable() -> StatusError:
    """406 for a watch in a form that can't be streamed."""
    return _only(_STREAMS_NAMED)


def _only(named: str) -> StatusError:
    """A media type that is served, in a form that isn't."""
    return status_error(406, "NotAcceptable", f"only the following media types are accepted: {named}")


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


def _accepted(clauses: list[dict[str, str]]) -> Iterator[Accept]:
    for clause in clauses:
        accepted = _accept(clause)
        if accepted is not None:
            yield accepted


def _accept(clause: dict[str, str]) -> Accept | None:
    media = JSON if clause[""] in ("*/*", "application/*") else clause[""]
    if media not in _SUPPORTED:
        return None
    stream = clause.get("stream")
    if stream and (stream != "watch" or media == YAML):
        return None
    if not any(name in clause for name in ("as", "g", "v")):
        return Accept(media, pretty=clause.get("pretty") == "1")
    kind, version = clause.get("as", ""), clause.get("v", "")
    if f"{clause.get('g', '')}/{version}" not in _FORMS.get(kind, ()):
        return None
    return Accept(media, kind, version)


@lru_cache(maxsize=256)
def body_media_type(header: str) -> str:
    """The media type of a request's body: JSON where none is named, StatusError 415 for one that nobody decodes."""
    media = header.partition(";")[0].strip().lower()
    if not media:
        return JSON
    if media not in _SUPPORTED:
        raise unknown_format(_SUPPORTED)
    return media


def unknown_format(accepted: Sequence[str]) -> StatusError:
    named = ", ".join(accepted)
    return new_unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {named}"
    )
