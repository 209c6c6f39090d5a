"""Functions that recognise an API server's refusals.

Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go (IsNotFound and others).
"""

from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.transport.round_trip import TransportError

__all__ = [
    "StatusError",
    "TransportError",
    "is_already_exists",
    "is_conflict",
    "is_expired",
    "is_forbidden",
    "is_gone",
    "is_invalid",
    "is_method_not_supported",
    "is_not_found",
    "is_server_timeout",
    "is_too_many_requests",
    "is_unauthorized",
    "is_unsupported_media_type",
]


def is_not_found(error: BaseException) -> bool:
    """Reports whether the object does not exist (404)."""
    return _is(error, "NotFound", 404)


def is_already_exists(error: BaseException) -> bool:
    """Reports whether the object that was to be created exists already (409)."""
    return _is(error, "AlreadyExists")


def is_conflict(error: BaseException) -> bool:
    """Reports whether another client wrote in between: read and try again (409)."""
    return _is(error, "Conflict", 409)


def is_invalid(error: BaseException) -> bool:
    """The object breaks its kind's rules (422)."""
    return _is(error, "Invalid", 422)


def is_method_not_supported(error: BaseException) -> bool:
    """The resource has no such verb (405)."""
    return _is(error, "MethodNotAllowed", 405)


def is_unsupported_media_type(error: BaseException) -> bool:
    """The body is of a type that the server doesn't take here (415)."""
    return _is(error, "UnsupportedMediaType", 415)


def is_gone(error: BaseException) -> bool:
    """Reports whether the object existed and won't come back (410)."""
    return _is(error, "Gone", 410)


def is_expired(error: BaseException) -> bool:
    """Reports whether a revision or a continue token is too old: list again (410)."""
    return _is(error, "Expired")


def is_forbidden(error: BaseException) -> bool:
    """Authorization or admission says no (403)."""
    return _is(error, "Forbidden", 403)


def is_unauthorized(error: BaseException) -> bool:
    """Reports whether the server rejects the credentials (401)."""
    return _is(error, "Unauthorized", 401)


def is_too_many_requests(error: BaseException) -> bool:
    """Come back later (429)."""
    return _is(error, "TooManyRequests", 429)


def is_server_timeout(error: BaseException) -> bool:
    """The server couldn't do it in time, and a later try may succeed (500 with a hint)."""
    return _is(error, "ServerTimeout")


def _is(error: BaseException, reason: str, code: int = 0) -> bool:
    """Compares the reason, or the code if the reason is unknown."""
    if not isinstance(error, StatusError):
        return False
    known = error.reason in _REASONS
    return error.reason == reason or (not known and code != 0 and error.code == code)


_REASONS: Final = frozenset(
    (
        *(
            "BadRequest",
            "Unauthorized",
            "Forbidden",
            "NotFound",
            "MethodNotAllowed",
            "NotAcceptable",
            "Conflict",
            "Gone",
        ),
        *("UnsupportedMediaType", "Invalid", "TooManyRequests", "ServiceUnavailable", "Timeout", "AlreadyExists"),
        *("Expired", "ServerTimeout", "InternalError", "StoreReadError", "RequestEntityTooLarge"),
    )
)
