"""AdmissionReview: what a webhook is asked, and what its answer says.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/{request/admissionreview.go,errors/statuserror.go}.
"""

import base64
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.webhook.matching import namespace_of
from fakeapiserver.apimachinery.errors import Status, StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.transport.review import (
    KIND,
    RAW,
    RESOURCE,
    STATUS,
    UID,
    BadReview,
    ReviewKind,
    check_uid,
    named_text,
    struct,
)

_TEXT: Final = {"type": "string"}
_USER: Final = struct("io.k8s.api.authentication.v1.UserInfo")
_REVIEW: Final = ReviewKind(
    "admission.k8s.io",
    "AdmissionReview",
    request={
        "uid": UID,
        "kind": struct(KIND),
        "resource": struct(RESOURCE),
        "subResource": _TEXT,
        "requestKind": struct(KIND, pointer=True),
        "requestResource": struct(RESOURCE, pointer=True),
        "requestSubResource": _TEXT,
        "name": _TEXT,
        "namespace": _TEXT,
        "operation": named_text("{version}.Operation!"),
        "userInfo": _USER,
        "object": RAW,
        "oldObject": RAW,
        "dryRun": {"type": "boolean", "x-go-type": "*bool"},
        "options": RAW,
    },
    response={
        "uid": UID,
        "allowed": {"type": "boolean"},
        "status": struct(STATUS, pointer=True),
        "patch": {"type": "string", "format": "byte"},
        "patchType": named_text("*{version}.PatchType"),
        "auditAnnotations": {"type": "object", "additionalProperties": _TEXT},
        "warnings": {"type": "array", "items": _TEXT},
    },
)


class Verdict(Struct, frozen=True):
    """A webhook's answer. `status` is its own explanation, or None."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Status | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)


class Subject(Struct, frozen=True):
    """The write as a webhook sees it: perhaps in another version than the client's."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    object: Object | None
    old_object: Object | None


def version_of(accepted: list[str]) -> str:
    """The first version that both sides know. BadReview."""
    if version := _REVIEW.version_of(accepted):
        return version
    raise BadReview("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def review(uid: str, version: str, attributes: Attributes, subject: Subject) -> bytes:
    given = {
        "uid": uid,
        **request_of(attributes, subject.resource, subject.kind),
        "object": subject.object,
        "oldObject": subject.old_object,
    }
    given.setdefault("options", None)
    return (
        json.encode({"kind": "AdmissionReview", "apiVersion": f"{_REVIEW.group}/{version}", "request": given}) + b"\n"
    )


def request_of(attributes: Attributes, resource: GroupVersionResource, kind: GroupVersionKind) -> Object:
    """Returns an AdmissionRequest without uid and objects. `resource` and `kind` are those of the rule that matched."""
    user = attributes.user
    user_info: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    if user.extra:
        user_info["extra"] = {key: list(values) for key, values in user.extra.items()}
    request: Object = {
        "kind": _kind(kind),
        "resource": _resource(resource),
        "subResource": attributes.subresource,
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(attributes.resource),
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": namespace_of(attributes),
        "operation": attributes.operation,
        "userInfo": {key: value for key, value in user_info.items() if value},
        "dryRun": attributes.dry_run,
    }
    if attributes.options:
        request["options"] = attributes.options
    return {key: value for key, value in request.items() if value != ""}


def _kind(gvk: GroupVersionKind) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(gvr: GroupVersionResource) -> Object:
    return {"group": gvr.group, "version": gvr.version, "resource": gvr.resource}


def decode(data: bytes, version: str) -> Object:
    """The body of a webhook's answer as an AdmissionReview of `version`. BadReview when it is something else."""
    return _REVIEW.decode(data, version)


def verdict(response: Object, uid: str, version: str, *, mutating: bool) -> Verdict:
    """Reads a decoded answer. Raises BadReview if it contradicts itself or the request."""
    answer = response.get("response")
    if answer is None:
        raise BadReview("webhook response was absent")
    patch, patch_type = base64.b64decode(answer.get("patch") or ""), answer.get("patchType")
    if version == "v1":
        check_uid(uid, answer)
        _REVIEW.check_kind(response, version)
        _check_patch(patch, patch_type, mutating)
    elif patch:
        patch_type = "JSONPatch"  # v1beta1 had no other
    return Verdict(
        bool(answer.get("allowed")),
        patch if mutating else b"",
        patch_type or "",
        answer.get("status"),
        tuple(answer.get("warnings") or ()),
        answer.get("auditAnnotations") or {},
    )


def _check_patch(patch: bytes, patch_type: str | None, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise BadReview("validating webhook may not return response.patch")
        if patch_type is not None:
            raise BadReview("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise BadReview("webhook returned response.patch but not response.patchType")
    elif patch_type is not None and not patch:
        raise BadReview("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise BadReview('webhook returned invalid response.patchType of ""')


def rejection(name: str, status: Status | None) -> StatusError:
    """The webhook's own Status, as a failure, saying whose it is."""
    denied = f"admission webhook {go_quote(name)} denied the request"
    own = status or {}
    explanation = own.get("message") or own.get("reason")
    rejected: Status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": own.get("metadata") or {},
        "status": "Failure" if own.get("status") in (None, "", "Success") else own["status"],
        "message": f"{denied}: {explanation}" if explanation else f"{denied} without explanation",
        **{name: own[name] for name in ("reason", "details") if own.get(name) is not None},
        "code": max(own.get("code") or 0, 400),
    }
    retry_after = (own.get("details") or {}).get("retryAfterSeconds") or 0
    return StatusError(rejected, (("Retry-After", str(retry_after)),) if retry_after > 0 else ())
