"""The answers of faults, in the forms in which kube-apiserver gives them (measured with 1.36.3, its etcd paused, full or compacted,
its priority levels exhausted).

Upstream: k8s.io/apimachinery/pkg/api/errors, k8s.io/apiserver/pkg/server/filters/{timeout,priority-and-fairness}.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from fakeapiserver.apimachinery import errors
from fakeapiserver.apimachinery.errors import StatusError, status_error
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import Attributes
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Answered, Request
from fakeapiserver.endpoints.verbs import list as list_verb
from fakeapiserver.faults.readers import WRITES
from fakeapiserver.faults.rule import Fault

_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
_NO_SPACE: Final = "etcdserver: mvcc: database space exceeded"
_WRITE_TIMED_OUT: Final = "request did not complete within requested timeout - context deadline exceeded"
_ETCD_TIMED_OUT: Final = "etcdserver: request timed out"
_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def refusal(request: Request, fault: Fault, name: str) -> StatusError | Answered:
    """Returns the exception that answers a request as the fault says. `name`: the object's, where the request has one."""
    if fault.reason or fault.message or fault.causes:
        return _worded(request, fault, name)
    resource = request.info.resource
    named = GroupResource(request.info.group, resource)
    status, retry_after = fault.status, fault.retry_after
    if status == 429:
        return too_many_requests(retry_after or 1)
    if status == 503:
        return _text(503, "service unavailable\n", retry_after)
    if status == 504:
        return timed_out(request)
    if status == 409:
        error = _conflict(request, named, name)
    elif status == 401:
        error = errors.new_unauthorized()
    elif status == 403:
        error = forbidden_error(_attributes(request), "")
    elif status == 404:
        error = errors.new_not_found(named, name) if name else errors.new_generic_not_found()
    elif status == 410:
        listed = request.info.verb == "list"
        error = list_verb.revision_expired() if listed else expired(request.param("resourceVersion"))
    elif status == 422:
        error = status_error(
            422, "Invalid", f"{resource} {go_quote(name)} is invalid", errors.resource_details(named, name)
        )
    elif status == 500:
        error = status_error(500, "", _NO_SPACE if request.info.verb in WRITES else _ETCD_TIMED_OUT)
    else:
        error = errors.new_bad_request("the server rejected our request for an unknown reason")
    return _with_retry_after(error, retry_after)


def too_many_requests(retry_after: int) -> Answered:
    """429 as priority and fairness gives it: text, not a Status."""
    return _text(429, "Too many requests, please try again later.\n", retry_after)


def timed_out(request: Request) -> StatusError | Answered:
    """504 as a server gives it whose etcd doesn't answer: a Status for writes, and for reads one that is called text."""
    if request.info.verb in WRITES:
        error = errors.new_timeout(_WRITE_TIMED_OUT)
        error.status["details"] = {}
        return error
    return Answered(respond.timed_out(request))


def expired(revision: str = "") -> StatusError:
    """410 Gone."""
    return errors.new_resource_expired(f"too old resource version: {revision or 1} ({int(revision or 1) + 1})")


def _conflict(request: Request, resource: GroupResource, name: str) -> StatusError:
    if request.info.verb == "create" and not request.info.subresource:
        return errors.new_already_exists(resource, name)
    return errors.new_conflict(resource, name, _MODIFIED)


def _attributes(request: Request) -> Attributes:
    info = request.info
    return Attributes(
        request.user,
        info.verb,
        info.path,
        info.resource_request,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        info.name,
    )


def _worded(request: Request, fault: Fault, name: str) -> StatusError:
    """A Status with what the fault names; what it doesn't is as upstream's errors have it."""
    resource = GroupResource(request.info.group, request.info.resource)
    details: dict[str, Any] = errors.resource_details(resource, name)
    if fault.causes:
        details["causes"] = [
            {key: text for key, text in structs.asdict(cause).items() if text} for cause in fault.causes
        ]
    reason = fault.reason or _REASONS[fault.status]
    error = status_error(fault.status, reason, fault.message or reason, details)
    return _with_retry_after(error, fault.retry_after)


def _with_retry_after(error: StatusError, seconds: int) -> StatusError:
    if seconds:
        error.headers = (("Retry-After", str(seconds)),)
        error.status["details"] = {**error.status.get("details", {}), "retryAfterSeconds": seconds}
    return error


def _text(status: int, text: str, retry_after: int) -> Answered:
    response = respond.text(status, text)
    if retry_after:
        response.headers.append((b"retry-after", b"%d" % retry_after))
    return Answered(response)
