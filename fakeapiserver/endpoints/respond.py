"""Makes answers from stored bytes or objects, in the form that the client asked for.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/{response.go,responsewriters/writers.go}.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from fakeapiserver.apimachinery import origin
from fakeapiserver.apimachinery.errors import Status, StatusError
from fakeapiserver.apimachinery.field import OMIT
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import arrangement
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apimachinery.serializer import cbor, json, yaml
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.endpoints.negotiation import protobuf as protobuf_forms
from fakeapiserver.endpoints.negotiation import table
from fakeapiserver.endpoints.negotiation.media_types import (
    CBOR,
    JSON,
    PLAIN,
    PROTOBUF,
    YAML,
    Accept,
    negotiate_status,
    streamed,
)
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
# The media types that upstream's route of a pod's log declares, although it ignores them.
_TEXT: Final = ("text/plain",)
# Resources and subresources without a Table beside those that are virtual (upstream: whose storage is no rest.TableConvertor).
_WITHOUT_TABLE: Final = frozenset(
    {
        ("apiservices", "status"),
        ("bindings", ""),
        ("certificatesigningrequests", "approval"),
        ("customresourcedefinitions", "status"),
        ("devicetaintrules", "status"),
        ("namespaces", "finalize"),
        ("podgroups", "status"),
        ("pods", "binding"),
        ("pods", "ephemeralcontainers"),
        ("pods", "eviction"),
        ("pods", "resize"),
        ("resourceclaims", "status"),
        ("resourcepoolstatusrequests", "status"),
        ("serviceaccounts", "token"),
    }
)
# Upstream: defaultGzipThresholdBytes and the level in writers.go.
_GZIP_THRESHOLD: Final = 128 * 1024
GZIP_HEADERS: Final = ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))
# Characters of all warnings of an answer, and of one where there are more.
_MAX_WARNINGS: Final = 4096
_MAX_WARNING: Final = 256
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_QUOTED: Final = re.compile(r'(["\\])')
_ESCAPED: Final = r"\\\1"
# What Go's strconv.ParseBool takes for true.
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))


def _part_of_status(kind: str) -> Schema:
    return {"$ref": f"#/components/schemas/{_META}{kind}"}


# Statuses come from webhooks, too, whose keys are in any order.
_STATUS_DEFINITIONS: Final[Definitions] = {
    _META + "Status": {"properties": {"details": _part_of_status("StatusDetails")}},
    _META + "StatusDetails": {"properties": {"causes": {"items": _part_of_status("StatusCause")}}},
    _META + "StatusCause": {"properties": {}},
}
_arrange_status: Final = arrangement(_STATUS_DEFINITIONS, _META + "Status", field_order)


def accepted(request: Request, scope: RequestScope) -> Accept:
    """The negotiated form of the answer. StatusError 406 if the client accepts nothing that is served."""
    supported = request.supported
    routed = produced(request, supported)
    return scope.dialect.negotiate(request.header(b"accept"), routed, supported, _has_table(request, scope))


def _has_table(request: Request, scope: RequestScope) -> bool:
    return scope.virtual is None and (
        (scope.resource.gvr.resource, request.info.subresource) not in _WITHOUT_TABLE or scope.dialect.always_has_tables
    )


def produced(request: Request, supported: tuple[str, ...]) -> tuple[str, ...]:
    """The media types that the request's route declares."""
    if request.info.verb in ("list", "watch"):
        return (*supported, *streamed(supported))
    return (*_TEXT, *supported) if request.info.subresource == "log" else supported


def stored_object(
    request: Request, scope: RequestScope, value: bytes, status: int = 200, accept: Accept | None = None
) -> Response:
    """An answer with one stored object, in the negotiated form (`accept` None: it is negotiated here)."""
    if accept is None:
        accept = accepted(request, scope)
    if accept.as_kind:
        return encoded(
            request, table.transformed(request, scope, accept, [scope.internal(value)], None), accept, status
        )
    if accept.media_type == PROTOBUF:
        log_response_object(request, lambda: scope.served(value))
        return answer(request, scope.protobuf.object(value), PROTOBUF, status)
    if accept.media_type == CBOR:
        log_response_object(request, lambda: scope.served(value))
        return answer(request, scope.cbor.object(value), CBOR, status)
    return raw(request, scope.served(value), accept, status)


def unstored_object(request: Request, scope: RequestScope, obj: Object, accept: Accept) -> Response:
    """201 with an object of the scope's kind that isn't stored, whole or only its metadata."""
    obj = scope.kind.arrange(obj)
    if accept.as_kind:
        obj = table.transformed(request, scope, accept, [obj], None)
    return encoded(request, obj, accept, 201)


def encoded(request: Request, obj: Object, accept: Accept = PLAIN, status: int = 200) -> Response:
    if accept.media_type == PROTOBUF:
        log_response_object(request, lambda: json.encode(obj))
        return answer(request, protobuf_forms.encode(obj), PROTOBUF, status)
    if accept.media_type == CBOR:
        log_response_object(request, lambda: json.encode(obj))
        return answer(request, cbor.encode(obj), CBOR, status)
    return raw(request, json.encode(obj), accept, status)


def status_response(request: Request, status: Status) -> Response:
    """An answer with a Status, in JSON if the client accepts nothing that is served."""
    status = _arrange_status(status)
    accept, code = negotiate_status(request.header(b"accept"), request.supported), int(status.get("code") or 200)
    if accept is None:  # which audit doesn't see either (upstream: WriteRawJSON)
        return answer(request, msgspec.json.format(json.encode(status), indent=2), JSON, code)
    return encoded(request, status, accept, code)


def timed_out(request: Request) -> Response:
    """A Status that doesn't say that it is one, as text: upstream's filter writes it past all negotiation, and past the headers
    of the filters behind it."""
    request.response_headers.clear()
    status = {
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: request did not complete within the allotted timeout",
        "reason": "Timeout",
        "details": {},
        "code": 504,
    }
    return Response(504, json.encode(status) + b"\n", "text/plain; charset=utf-8")


def refusal(request: Request, error: StatusError) -> Response:
    """An answer with an error's Status and headers. Logs where the error comes from (origin.py)."""
    if origin.wanted():
        _tell_origin(request, error)
    response = status_response(request, error.status)
    response.headers += [(name.lower().encode(), value.encode()) for name, value in error.headers]
    return response


def _tell_origin(request: Request, error: StatusError) -> None:
    """Logs each error with its origin, but without values, which may be long or secret."""
    told = [(str(replace(each, value=OMIT)), each.origin) for each in error.field_errors]
    for text, places in told or [(f"{error.reason}: {error.message}", origin.of_exception(error))]:
        origin.log.debug("%s %r %d: %s", request.method, request.path, error.code, "\n  ".join((text, *places)))


def raw(request: Request, body: bytes, accept: Accept, status: int = 200) -> Response:
    """An answer from JSON bytes: as they are, with or without a trailing newline, or indented, or as YAML, protobuf or CBOR."""
    if accept.media_type in (PROTOBUF, CBOR):
        return encoded(request, json.decode_plainly(body), accept, status)
    log_response_object(request, lambda: body)
    if accept.media_type == YAML:
        return answer(request, yaml.encode(json.decode_plainly(body)), YAML, status)
    if pretty(request, accept):
        return answer(request, msgspec.json.format(body, indent=2), JSON, status)
    return answer(request, body if body.endswith(b"\n") else body + b"\n", JSON, status)


def log_response_object(request: Request, encoded: Callable[[], bytes]) -> None:
    """Passes the object of the response to audit. `encoded` returns it as JSON, whatever encoding the client gets."""
    if request.audit is not None:
        request.audit.log_response_object(encoded)


def answer(request: Request, body: bytes, content_type: str, status: int = 200) -> Response:
    """An answer with these bytes, compressed if they are many and the client accepts that."""
    headers: list[tuple[bytes, bytes]] = []
    if compresses(request, len(body)):
        body = gzip.compress(body, 1)
        headers += GZIP_HEADERS
    return Response(status, body, content_type, headers)


def in_pieces(pieces: Iterator[bytes], size: int, content_type: str, *, compressed: bool = False) -> Response:
    """An answer with a large body that is made while it is sent. `size`: about its bytes, before they were compressed."""
    headers = [*GZIP_HEADERS] if compressed else []
    return Response(200, b"", content_type, headers, pieces=pieces, size=size)


def compresses(request: Request, size: int) -> bool:
    """Reports whether an answer of so many bytes is compressed."""
    return size > _GZIP_THRESHOLD and request.compresses and takes_gzip(request)


def takes_gzip(request: Request) -> bool:
    """Reports whether the client accepts gzip. Upstream compares whole words, so `gzip;q=0.5` doesn't count."""
    return "gzip" in [word.strip() for word in request.header(b"accept-encoding").split(",")]


def pretty(request: Request, accept: Accept) -> bool:
    """Reports whether JSON is indented: on request, and for curl, Wget and browsers, which upstream knows by their names."""
    if accept.pretty:
        return True
    if wanted := request.param("pretty"):
        return wanted in _TRUE
    return request.header(b"user-agent").startswith(("curl", "Wget", "Mozilla/5.0"))


def warning_headers(texts: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """RFC 7234's Warning as upstream writes it: code 299, no agent, each text once. If all together are too long, each is cut;
    texts with control characters are left out (upstream: pkg/endpoints/filters/warning.go)."""
    warnings = [text for text in dict.fromkeys(texts) if text and not _CONTROL.search(text)]
    if sum(map(len, warnings)) > _MAX_WARNINGS:
        warnings = [text[:_MAX_WARNING] for text in warnings]
        total, kept = 0, 0
        while kept < len(warnings) and total < _MAX_WARNINGS:
            total, kept = total + len(warnings[kept]), kept + 1
        warnings = warnings[:kept]
    return [(b"warning", f'299 - "{_QUOTED.sub(_ESCAPED, text)}"'.encode()) for text in warnings]


def text(status: int, body: str) -> Response:
    """An answer in plain text, as Go's http.Error makes it."""
    return Response(status, body.encode(), "text/plain; charset=utf-8", [(b"x-content-type-options", b"nosniff")])
