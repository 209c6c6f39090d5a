"""Requests as an HTTP Archive (HAR 1.2), which browsers' developer tools show as a waterfall.

Credentials and the bodies of Secrets and tokens are not kept, so an archive has none. Bodies in protobuf and CBOR are shown as JSON.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.evidence.entry import RequestEntry

# An archive needs absolute addresses, and the log doesn't know under which of its own the server was reached.
_ORIGIN: Final = "https://kubernetes.default.svc"
_UNKNOWN: Final = -1
_HTTP: Final = "HTTP/1.1"


def archive(entries: Iterable[RequestEntry]) -> Object:
    """Returns the archive. Fields of our own begin with an underscore: `_user`, `_verb`, `_fault`, `_seq`."""
    creator = {"name": "fakeapiserver", "version": version("fakeapiserver")}
    return {"log": {"version": "1.2", "creator": creator, "entries": [*map(_entry, entries)]}}


def encoded(archive: Object) -> bytes:
    """Returns the archive as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(archive))


def _entry(entry: RequestEntry) -> Object:
    milliseconds = 1000 * entry.duration
    return {
        "startedDateTime": datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds"),
        "time": milliseconds,
        "request": _request(entry),
        "response": _response(entry),
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds, "receive": 0},
        "connection": entry.connection.rpartition(":")[2],
        "_seq": entry.seq,
        "_user": entry.user,
        "_verb": entry.verb,
        "_fault": entry.fault,
    }


def _request(entry: RequestEntry) -> Object:
    content = entry.content
    request = {
        "method": entry.method,
        "url": f"{_ORIGIN}{entry.uri}",
        "httpVersion": _HTTP,
        "cookies": [],
        "headers": _headers({"User-Agent": entry.user_agent, "Content-Type": content.request_type if content else ""}),
        "queryString": [
            {"name": name, "value": value} for name, value in parse_qsl(entry.query, keep_blank_values=True)
        ],
        "headersSize": _UNKNOWN,
        "bodySize": entry.request_bytes,
    }
    if content is not None and content.request:
        request["postData"] = {"mimeType": content.request_type, "text": _text(content.request, entry.body)}
    return request


def _response(entry: RequestEntry) -> Object:
    content = entry.content
    body: Object = {"size": entry.response_bytes, "mimeType": content.response_type if content else ""}
    if content is not None and content.response and len(content.response) == entry.response_bytes:
        body["text"] = _text(content.response, entry.answer)
    return {
        "status": entry.status,
        "statusText": _phrase(entry.status),
        "httpVersion": _HTTP,
        "cookies": [],
        "headers": _headers({"Content-Type": body["mimeType"], "Fakeapiserver-Fault": entry.fault}),
        "content": body,
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": entry.response_bytes,
    }


def _headers(headers: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in headers.items() if value]


def _text(data: bytes, decoded: Any) -> str:
    """Returns a body that is text as it was sent, and any other as JSON."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return msgspec.json.encode(decoded).decode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
