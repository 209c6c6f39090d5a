"""What an API server's refusals are called, and what a client makes of answers that aren't a Status.

Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go (IsNotFound and its like, NewGenericServerResponse).
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.errors import StatusError, status_error
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.transport.round_trip import TransportError

__all__ = [
    "StatusError",
    "TransportError",
    "answered",
    "is_already_exists",
    "is_conflict",
    "is_expired",
    "is_forbidden",
    "is_gone",
    "is_invalid",
    "is_not_found",
    "is_server_timeout",
    "is_too_many_requests",
    "is_unauthorized",
]

# code -> reason, message
_GENERIC: Final[Mapping[int, tuple[str, str]]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", ""),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Gone", "the item is no longer available at the server and no forwarding address is known"),
    415: ("UnsupportedMediaType", ""),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def answered(code: int, content_type: str, body: bytes) -> StatusError:
    """The refusal in an answer: the Status in its body, or one made from its code."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        found: Any = msgspec.json.decode(body)
        if isinstance(found, dict) and found.get("kind") == "Status" and found.get("status") != "Success":
            found.setdefault("code", code)
            return StatusError(found)
    text = body[:2048].decode("utf-8", "replace").strip() if content_type.startswith("text/") else "unknown"
    if code in _GENERIC:
        reason, message = _GENERIC[code]
        return status_error(code, reason, message or text)
    if code >= 500:
        message = f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
        return status_error(code, "InternalError", message)
    return status_error(
        code, "Unknown", f"the server responded with the status code {code} but did not return more information"
    )


def is_not_found(error: BaseException) -> bool:
    """What was asked for isn't there (404)."""
    return _is(error, "NotFound", 404)


def is_already_exists(error: BaseException) -> bool:
    """What was to be created is there already (409)."""
    return _is(error, "AlreadyExists")


def is_conflict(error: BaseException) -> bool:
    """Somebody else wrote in between: read again and try again (409)."""
    return _is(error, "Conflict", 409)


def is_invalid(error: BaseException) -> bool:
    """The object breaks its kind's rules (422)."""
    return _is(error, "Invalid", 422)


def is_gone(error: BaseException) -> bool:
    """It was there and won't come back (410)."""
    return _is(error, "Gone", 410)


def is_expired(error: BaseException) -> bool:
    """A revision or a continue token is too old: list anew (410)."""
    return _is(error, "Expired")


def is_forbidden(error: BaseException) -> bool:
    """Authorization or admission says no (403)."""
    return _is(error, "Forbidden", 403)


def is_unauthorized(error: BaseException) -> bool:
    """Nobody the server knows (401)."""
    return _is(error, "Unauthorized", 401)


def is_too_many_requests(error: BaseException) -> bool:
    """Come back later (429)."""
    return _is(error, "TooManyRequests", 429)


def is_server_timeout(error: BaseException) -> bool:
    """The server couldn't do it in time, and a later try may succeed (500 with a hint)."""
    return _is(error, "ServerTimeout")


def _is(error: BaseException, reason: str, code: int = 0) -> bool:
    """By the reason; by the code where the reason is none that is known."""
    if not isinstance(error, StatusError):
        return False
    known = error.reason in _REASONS
    return error.reason == reason or (not known and code != 0 and error.code == code)


_REASONS: Final = frozenset(
    {reason for reason, _ in _GENERIC.values()}
    | {"AlreadyExists", "Expired", "ServerTimeout", "InternalError", "StoreReadError", "RequestEntityTooLarge"}
)
