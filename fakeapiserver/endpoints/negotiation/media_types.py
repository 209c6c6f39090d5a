"""Negotiates the media types of answers and checks those of bodies.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError, new_not_acceptable, new_unsupported_media_type, status_error
from fakeapiserver.endpoints.negotiation.accept import parse, remembered

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
PROTOBUF_STREAM: Final = PROTOBUF + ";stream=watch"
CBOR: Final = "application/cbor"
CBOR_SEQUENCE: Final = "application/cbor-seq"
# The media types of every server, and those of a server with CBOR.
SUPPORTED: Final[tuple[str, ...]] = (JSON, YAML, PROTOBUF)
WITH_CBOR: Final[tuple[str, ...]] = (*SUPPORTED, CBOR)
_META: Final = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")
# The forms that a client may ask for -> their group versions.
_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "Table": _META,
    "PartialObjectMetadata": _META,
    "PartialObjectMetadataList": _META,
    "APIGroupDiscoveryList": ("apidiscovery.k8s.io/v2",),
}


class Accept(Struct, frozen=True):
    """The chosen media type. `as_kind` is the form the client asked for (`Table`, `PartialObjectMetadata` …), of its group's
    `as_version`; empty for the object itself."""

    media_type: str = JSON
    as_kind: str = ""
    as_version: str = ""
    pretty: bool = False


PLAIN: Final = Accept()


@remembered(1024)
def negotiate(
    header: str,
    produced: tuple[str, ...] = (),
    custom: bool = False,
    supported: tuple[str, ...] = SUPPORTED,
    tables: bool = True,
) -> Accept:
    """Returns the first acceptable form, by quality. Raises StatusError 406 if there is no such form.

    The route accepts the media types `produced`, by default those supported. Custom resources have no protobuf
    form, but their metadata has.
    `tables`: the resource has a Table.
    """
    if not header or header in (JSON, "*/*"):
        return PLAIN
    if not custom:
        check_route(header, produced or supported)
    for accepted in _accepted(header, supported, server_version="v1"):
        served = (
            _is_meta_form(accepted, tables) if accepted.as_kind else not (custom and accepted.media_type == PROTOBUF)
        )
        if served:
            return accepted
    raise new_not_acceptable(supported)


@remembered(256)
def negotiate_document(header: str, supported: tuple[str, ...] = SUPPORTED) -> Accept:
    """The media type for a discovery document. StatusError 406."""
    accepted = _plain_form(header, supported)
    if accepted is None:
        raise new_not_acceptable(supported)
    return accepted


@remembered(256)
def negotiate_aggregated(header: str, supported: tuple[str, ...] = SUPPORTED) -> Accept | None:
    """Returns the clause that asks for aggregated discovery, or None."""
    asked = (accepted for accepted in _accepted(header, supported) if accepted.as_kind == "APIGroupDiscoveryList")
    return next(asked, None)


@remembered(256)
def negotiate_status(header: str, supported: tuple[str, ...] = SUPPORTED) -> Accept | None:
    """The media type for a Status; None if the client accepts none."""
    return _plain_form(header, supported)


def check_route(header: str, produced: Sequence[str] = SUPPORTED) -> None:
    """StatusError 406 in the words of upstream's router, which looks first: at media types only, without wildcards but one."""
    named = [part.partition(";")[0].strip(" ") for part in (header or "*/*").split(",")]
    taken = [media_type for media_type in produced if ";" not in media_type]
    if not any(media_type == "*/*" or media_type in taken for media_type in named):
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
        raise status_error(406, "NotAcceptable", message, {})


def check_body_type(header: str, consumed: Sequence[str]) -> None:
    """StatusError 415 in the words of upstream's router, which looks at the Content-Type of requests without a body too, and
    before it looks at Accept."""
    if header and not takes_body_type(header, consumed):
        raise status_error(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def takes_body_type(header: str, consumed: Sequence[str]) -> bool:
    """Reports whether upstream's router finds one of these types in a Content-Type, which it takes for a list."""
    return any(part.partition(";")[0].strip(" ") in consumed for part in header.split(","))


def not_streamable(supported: tuple[str, ...]) -> StatusError:
    """406 for a watch in a form that can't be streamed."""
    return new_not_acceptable(streamed(supported))


@lru_cache
def streamed(supported: tuple[str, ...]) -> tuple[str, ...]:
    """The media types of watches."""
    return (f"{JSON};stream=watch", PROTOBUF_STREAM, *([CBOR_SEQUENCE] if CBOR in supported else []))


def _is_meta_form(accepted: Accept, tables: bool) -> bool:
    if accepted.as_kind == "Table":
        return tables and accepted.media_type in (JSON, YAML)
    return accepted.as_kind != "APIGroupDiscoveryList"


def _plain_form(header: str, supported: tuple[str, ...] = SUPPORTED) -> Accept | None:
    if not header:
        return PLAIN
    return next((accepted for accepted in _accepted(header, supported) if not accepted.as_kind), None)


def _accepted(header: str, supported: tuple[str, ...] = SUPPORTED, server_version: str = "") -> Iterator[Accept]:
    """Yields the forms that the clauses allow, best first, whether or not they are served.

    `server_version` is the endpoint's.
    """
    for clause in parse(header):
        form = _form(clause.parameters)
        if form is None or clause.parameters.get("sv", "") not in ("", server_version):
            continue
        stream = clause.parameters.get("stream")
        for media_type in supported:
            if not clause.takes(media_type) or (stream and (stream != "watch" or media_type == YAML)):
                continue
            yield Accept(media_type, *form, pretty=clause.parameters.get("pretty") == "1")


def _form(parameters: Mapping[str, str]) -> tuple[str, str] | None:
    """The requested (kind, version), empty for the object itself; None for an unknown form."""
    kind, group, version = (parameters.get(name, "") for name in ("as", "g", "v"))
    if not (kind or group or version):
        return "", ""
    return (kind, version) if f"{group}/{version}" in _FORMS.get(kind, ()) else None


_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED: Final = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f-\U0010ffff]|\\.)*"'
_MEDIA_TYPE: Final = re.compile(
    rf"\s*({_TOKEN}/{_TOKEN})\s*((?:;\s*{_TOKEN}\s*=\s*(?:{_TOKEN}|{_QUOTED})\s*)*);?\s*", re.ASCII
)
_PARAMETER_NAME: Final = re.compile(rf";\s*({_TOKEN})\s*=(?:\s*{_QUOTED})?", re.ASCII)


@lru_cache(maxsize=256)
def body_media_type(header: str, supported: tuple[str, ...] = SUPPORTED) -> str:
    """Returns the media type of a request's body, by default JSON.

    Raises StatusError 415 for an unsupported one, and for invalid parameters (Go: mime.ParseMediaType).
    """
    if not header:
        return JSON
    match = _MEDIA_TYPE.fullmatch(header)
    if match is not None:
        media_type = match[1].lower()
        named = [name.lower() for name in _PARAMETER_NAME.findall(match[2])]
        if media_type in supported and len(named) == len(set(named)):
            return media_type
    raise unknown_format(supported)


def unknown_format(accepted: Sequence[str]) -> StatusError:
    named = ", ".join(accepted)
    return new_unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {named}"
    )
