"""metav1.Status errors: the one shape of every refusal above the store.

Upstream: k8s.io/apimachinery/pkg/api/errors/errors.go. Every constructor returns the exception to raise; the server renders it in
one place (server/app.py). Messages are upstream's.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.apimachinery.field import Error, ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.serializer import json

Status = dict[str, Any]
_MAX_TEXT: Final = 2048
# Characters of errors in one answer.
MOST_TEXT: Final = 4 * 1024 * 1024


class StatusError(Exception):
    """A metav1.Status with its HTTP code; `headers` are added to the answer, for instance Retry-After. `field_errors` are the errors that
    its causes show."""

    field_errors: Sequence[Error] = ()

    def __init__(self, status: Status, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = tuple(headers)

    @property
    def code(self) -> int:
        return int(self.status.get("code", 500))

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.status.get("message", ""))


def status_error(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> StatusError:
    """A failure Status; empty reason and absent details are left out as Go's omitempty does."""
    status: Status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return StatusError(status)


# What a status code without a Status means: (reason, message). Those without a message show what the server said.
_RESPONSES: Final[Mapping[int, tuple[str, str]]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", ""),
    409: ("Conflict", "the server reported a conflict"),
    415: ("UnsupportedMediaType", ""),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def new_generic_server_response(code: int, text: str, method: str = "", retry_after: int = 0) -> StatusError:
    """The error for an answer that isn't a Status. `text` is its body, `retry_after` the seconds that the server asks to wait
    (NewGenericServerResponse)."""
    cause = {"reason": "UnexpectedServerResponse", **({"message": text} if text else {})}
    details: dict[str, Any] = {"causes": [cause]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    reason, message = _RESPONSES.get(code, ("", ""))
    if code == 409 and method == "POST":
        reason = "AlreadyExists"
    if code == 406 and text in ("", "unknown"):
        message = "the server was unable to respond with a content type that the client supports"
    if code in _RESPONSES:
        return status_error(code, reason, message or text, details)
    if code >= 500:
        message = f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
        return status_error(code, "InternalError", message, details)
    message = f"the server responded with the status code {code} but did not return more information"
    return status_error(code, "", message, details)


def answered(code: int, content_type: str, body: bytes, method: str = "", retry_after: int = 0) -> StatusError:
    """The refusal in an answer: the Status in its body, or one made of its code. `content_type` is empty where the answer names none.

    Upstream: k8s.io/client-go/rest/request.go (Result.Error, newUnstructuredResponseError)."""
    is_json = not content_type or "json" in content_type
    with suppress(ValueError):
        document = json.decode(body) if is_json else None
        if isinstance(document, dict) and document.get("kind") == "Status" and document.get("status") == "Failure":
            return StatusError(document)
    is_text = not content_type or content_type.startswith("text/")
    text = body[:_MAX_TEXT].decode("utf-8", "replace").strip() if is_text else "unknown"
    return new_generic_server_response(code, text, method, retry_after)


def resource_details(resource: GroupResource, name: str = "") -> dict[str, Any]:
    """Status.details of an error about one object: name, group, and (so upstream) the resource as `kind`."""
    details = {"name": name, "group": resource.group, "kind": resource.resource}
    return {key: value for key, value in details.items() if value}


def new_not_found(resource: GroupResource, name: str) -> StatusError:
    return status_error(404, "NotFound", f"{resource} {go_quote(name)} not found", resource_details(resource, name))


def new_generic_not_found() -> StatusError:
    """Returns the error for a path that is not served (upstream: NewGenericServerResponse, 404)."""
    return status_error(404, "NotFound", "the server could not find the requested resource", {})


def new_already_exists(resource: GroupResource, name: str) -> StatusError:
    details = resource_details(resource, name)
    return status_error(409, "AlreadyExists", f"{resource} {go_quote(name)} already exists", details)


def new_generate_name_conflict(resource: GroupResource, name: str) -> StatusError:
    message = (
        f"{resource} {go_quote(name)} already exists, the server was not able to generate a unique name for the object"
    )
    error = status_error(409, "AlreadyExists", message, resource_details(resource, name) | {"retryAfterSeconds": 1})
    error.headers = (("Retry-After", "1"),)
    return error


def new_conflict(resource: GroupResource, name: str, reason: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {resource} {go_quote(name)}: {reason}"
    return status_error(409, "Conflict", message, resource_details(resource, name))


def new_apply_conflict(causes: Sequence[dict[str, str]], message: str) -> StatusError:
    return status_error(409, "Conflict", message, {"causes": list(causes)})


def new_resource_expired(message: str) -> StatusError:
    return status_error(410, "Expired", message)


def new_bad_request(message: str) -> StatusError:
    return status_error(400, "BadRequest", message)


def new_unauthorized() -> StatusError:
    return status_error(401, "Unauthorized", "Unauthorized")


def new_forbidden(resource: GroupResource, name: str, reason: str) -> StatusError:
    subject = f"{resource} {go_quote(name)}" if name else str(resource)
    message = f"{subject} is forbidden: {reason}" if any(resource) else f"forbidden: {reason}"
    return status_error(403, "Forbidden", message, resource_details(resource, name))


def aggregated(errors: ErrorList) -> str:
    """Field errors in one text, without duplicates (upstream: ErrorList.ToAggregate)."""
    texts = list(dict.fromkeys(str(e) for e in errors))
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"


def new_invalid(kind: GroupKind, name: str, errors: ErrorList) -> StatusError:
    """422 with one cause per field error, up to MOST_TEXT characters. Where there are more, upstream answers 504 after its deadline."""
    errors, left = _shown(errors)
    causes = [{"reason": e.reason, "message": e.body(), "field": e.field} for e in errors]
    message = (
        f"{kind} {go_quote(name)} is invalid: {aggregated(errors)}" if errors else f"{kind} {go_quote(name)} is invalid"
    )
    if left:
        message += f", and {left} more errors"
    details: dict[str, Any] = {key: v for key, v in (("name", name), ("group", kind.group), ("kind", kind.kind)) if v}
    if causes:
        details["causes"] = causes
    error = status_error(422, "Invalid", message, details)
    error.field_errors = errors
    return error


def _shown(errors: ErrorList) -> tuple[ErrorList, int]:
    """Returns the errors that an answer has room for, and the number of the others."""
    size = 0
    for count, error in enumerate(errors):
        if size > MOST_TEXT:
            return errors[:count], len(errors) - count
        size += len(error.field) + len(error.body())
    return list(errors), 0


def new_method_not_supported(resource: GroupResource, action: str) -> StatusError:
    return status_error(
        405,
        "MethodNotAllowed",
        f'{action} is not supported on resources of kind "{resource}"',
        resource_details(resource),
    )


def new_generic_method_not_allowed() -> StatusError:
    return status_error(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def new_not_acceptable(media_types: Sequence[str]) -> StatusError:
    message = "only the following media types are accepted: " + ", ".join(media_types)
    return status_error(406, "NotAcceptable", message)


def new_unsupported_media_type(message: str) -> StatusError:
    return status_error(415, "UnsupportedMediaType", message)


def new_request_entity_too_large(message: str) -> StatusError:
    return status_error(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def new_too_many_requests(message: str, retry_after: int) -> StatusError:
    """`retry_after` 0 leaves the time to the client."""
    error = status_error(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after} if retry_after else {})
    if retry_after:
        error.headers = (("Retry-After", str(retry_after)),)
    return error


def new_internal_error(message: str) -> StatusError:
    details = {"causes": [{"message": message}]}
    return status_error(500, "InternalError", f"Internal error occurred: {message}", details)


def new_timeout(message: str, retry_after: int = 0) -> StatusError:
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    error = status_error(504, "Timeout", f"Timeout: {message}", details)
    if retry_after:
        error.headers = (("Retry-After", str(retry_after)),)
    return error


def new_service_unavailable(message: str) -> StatusError:
    return status_error(503, "ServiceUnavailable", message)
