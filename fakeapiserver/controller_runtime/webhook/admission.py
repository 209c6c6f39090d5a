"""Answers to AdmissionReviews: what is let in, what is changed, what is refused and why.

Upstream: sigs.k8s.io/controller-runtime/pkg/webhook/admission.
"""

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime.cache import copied
from fakeapiserver.controller_runtime.http_server import Receive, Scope, Send, read_body, respond
from fakeapiserver.controller_runtime.webhook.server import metrics_of

__all__ = [
    "CustomDefaulter",
    "CustomValidator",
    "Decide",
    "DefaulterHandler",
    "Handler",
    "HandlerFunc",
    "Request",
    "Response",
    "ValidatorHandler",
    "Webhook",
    "allowed",
    "denied",
    "errored",
    "json_patch",
    "patch_response",
    "patched",
]

log = logging.getLogger(__name__)

_MAX_BODY: Final = 7 * 1024 * 1024
_VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


class Request:
    """An AdmissionRequest. `object` and `old_object` may be None; they are copies, which may be changed."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.raw = request
        self.uid: str = request["uid"]
        self.operation: str = request.get("operation", "")
        self.name: str = request.get("name", "")
        self.namespace: str = request.get("namespace", "")
        self.subresource: str = request.get("subResource", "")
        self.dry_run = bool(request.get("dryRun"))
        self.user_info: Mapping[str, Any] = request.get("userInfo") or {}
        self.object: Object | None = request.get("object")
        self.old_object: Object | None = request.get("oldObject")


class Response(Struct, frozen=True):
    """allowed, or not with code, reason and message; patches are JSON patch operations."""

    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    patches: Sequence[Object] = ()
    warnings: Sequence[str] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, Any] | None = None

    def with_warnings(self, *warnings: str) -> "Response":
        """Returns the response with warnings for the client."""
        return replace(self, warnings=(*self.warnings, *warnings))


def allowed(message: str = "") -> Response:
    """Allows the request."""
    return Response(True, 200, message=message)


def denied(message: str) -> Response:
    """Denies the request (403)."""
    return Response(False, 403, "Forbidden", message)


def errored(code: int, error: BaseException | str) -> Response:
    """Reports an error; `code` is an HTTP status."""
    return Response(False, code, message=str(error))


def patched(message: str, *patches: Object) -> Response:
    """Allows the request with these patches."""
    return Response(True, 200, message=message, patches=patches)


def patch_response(old: Object, new: Object) -> Response:
    """Allows the request, with patches that change `old` to `new`."""
    return Response(True, 200, patches=json_patch(old, new))


class Handler(Protocol):
    """Decides about a request."""

    async def handle(self, request: Request) -> Response: ...


class CustomDefaulter(Protocol):
    """Changes an object before it is validated and stored."""

    async def default(self, obj: Object, request: Request) -> None:
        """Changes `obj` in place. Raise StatusError, or ValueError with a sentence, to refuse it."""


class CustomValidator(Protocol):
    """Looks at objects that are to be stored, or deleted. Each answers warnings for the client, or None; raise StatusError, or
    ValueError with a sentence, to refuse."""

    async def validate_create(self, obj: Object) -> Sequence[str] | None: ...

    async def validate_update(self, old: Object, new: Object) -> Sequence[str] | None: ...

    async def validate_delete(self, obj: Object) -> Sequence[str] | None: ...


class DefaulterHandler(Struct, frozen=True):
    """A CustomDefaulter as a Handler; deletions pass."""

    defaulter: CustomDefaulter

    async def handle(self, request: Request) -> Response:
        if request.operation == "DELETE" or request.object is None:
            return allowed()
        wanted = copied(request.object)
        try:
            await self.defaulter.default(wanted, request)
        except (StatusError, ValueError) as error:
            return _refusal(error)
        return patch_response(request.object, wanted)


class ValidatorHandler(Struct, frozen=True):
    """A CustomValidator as a Handler."""

    validator: CustomValidator

    async def handle(self, request: Request) -> Response:
        try:
            warnings = await self._validate(request)
        except (StatusError, ValueError) as error:
            return _refusal(error)
        return allowed().with_warnings(*(warnings or ()))

    async def _validate(self, request: Request) -> Sequence[str] | None:
        match request.operation:
            case "CREATE" if request.object is not None:
                return await self.validator.validate_create(request.object)
            case "UPDATE" if request.object is not None and request.old_object is not None:
                return await self.validator.validate_update(request.old_object, request.object)
            case "DELETE" if request.old_object is not None:
                return await self.validator.validate_delete(request.old_object)
            case "CONNECT":
                return None
        raise StatusError({"code": 400, "message": f"unknown operation {json.dumps(request.operation)}"})


def _refusal(error: StatusError | ValueError) -> Response:
    if isinstance(error, StatusError):
        return Response(False, error.code, error.reason, error.message, status=error.status)
    return denied(str(error))


class Webhook:
    """A Handler behind a path: `server.register("/mutate-example-com-v1-widget", Webhook(handler))`."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        version, request, response = "admission.k8s.io/v1", None, None
        try:
            version, request = _decoded(scope, await read_body(receive, _MAX_BODY))
            response = await self._handler.handle(request)
        except ValueError as error:
            response = errored(400, error)
        except Exception as error:
            log.exception("a webhook handler of %s failed", scope["path"])
            if (metrics := metrics_of(scope)) is not None:
                metrics.webhook_panics.inc()
            response = errored(500, f"panic: {error} [recovered]")
        review = {"apiVersion": version, "kind": "AdmissionReview", "response": _rendered(request, response)}
        await respond(send, 200, msgspec.json.encode(review) + b"\n", "application/json")


def _decoded(scope: Scope, body: bytes) -> tuple[str, Request]:
    content_type = next((value for name, value in scope["headers"] if name == b"content-type"), b"").decode("latin-1")
    if content_type.partition(";")[0].strip() != "application/json":
        raise ValueError(f"contentType={content_type}, expected application/json")
    if not body:
        raise ValueError("request body is empty")
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"unable to decode the request: {error}") from None
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or "uid" not in request:
        raise ValueError("got an AdmissionReview without a request")
    version = review.get("apiVersion")
    return version if version in _VERSIONS else _VERSIONS[0], Request(request)


def _rendered(request: Request | None, response: Response) -> Object:
    status = response.status or {"code": response.code, "reason": response.reason, "message": response.message}
    review: Object = {
        "uid": request.uid if request else "",
        "allowed": response.allowed,
        "status": {"metadata": {}, **{key: value for key, value in status.items() if value}},
    }
    if response.patches:
        review["patchType"] = "JSONPatch"
        review["patch"] = base64.b64encode(msgspec.json.encode(response.patches)).decode()
    if response.warnings:
        review["warnings"] = [*response.warnings]
    if response.audit_annotations:
        review["auditAnnotations"] = dict(response.audit_annotations)
    return review


def json_patch(old: Any, new: Any, path: str = "") -> list[Object]:
    """The JSON patch (RFC 6902) that makes `new` of `old`; lists are replaced whole where they differ in length."""
    if isinstance(old, dict) and isinstance(new, dict):
        patches: list[Object] = []
        for key in old.keys() - new.keys():
            patches.append({"op": "remove", "path": f"{path}/{_escaped(key)}"})
        for key, value in new.items():
            here = f"{path}/{_escaped(key)}"
            if key not in old:
                patches.append({"op": "add", "path": here, "value": value})
            else:
                patches += json_patch(old[key], value, here)
        return patches
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            row
            for place, (a, b) in enumerate(zip(old, new, strict=True))
            for row in json_patch(a, b, f"{path}/{place}")
        ]
    same = type(old) is type(new) and old == new
    return [] if same else [{"op": "replace", "path": path, "value": new}]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


Decide = Callable[[Request], Awaitable[Response]]


class HandlerFunc(Struct, frozen=True):
    """A function as a Handler."""

    function: Decide

    async def handle(self, request: Request) -> Response:
        return await self.function(request)
