"""A conversion and admission webhook for scenarios and differential runs: HTTPS on a free port, with a certificate made when it starts.

The path says how it answers. `/` converts properly: `spec.size` is a number in v1 and a text in v2, `spec.onlyV1` and
`spec.onlyV2` travel as annotations, and an object whose `spec.mode` names a fault gets that one. Any other path is a fault for all
that is asked (`FAULTS`).

An AdmissionReview is allowed, or answered as its path says (`ADMISSION`), or with one of the faults that fit it.
"""

import base64
import copy
import json
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from conformance.players.tls_server import TLSServer

Object = dict[str, Any]
# What a fault makes of a converted object.
ObjectFault = Callable[[Object], Any]
# What a fault makes of a whole answer.
ReviewFault = Callable[[Object], Any]

# Seconds; a webhook's time limit is at least one.
_LATE: Final = 1.5
_SHOWN: Final = "https://webhook.example"
_SHOWN_BUNDLE: Final = "CABUNDLE"


def _set(*path: str, to: Any) -> ObjectFault:
    def change(obj: Object) -> Object:
        target = obj
        for name in path[:-1]:
            target = target[name]
        target[path[-1]] = to
        return obj

    return change


def _drop(*path: str) -> ObjectFault:
    def change(obj: Object) -> Object:
        target = obj
        for name in path[:-1]:
            target = target[name]
        target.pop(path[-1], None)
        return obj

    return change


OBJECT_FAULTS: Final[dict[str, ObjectFault]] = {
    "kind": _set("kind", to="Other"),
    "no-kind": _drop("kind"),
    "version": _set("apiVersion", to="conversion.example.com/v9"),
    "no-version": _drop("apiVersion"),
    "odd-version": _set("apiVersion", to="a/b/c"),
    "name": _set("metadata", "name", to="other"),
    "namespace": _set("metadata", "namespace", to="other"),
    "uid": _set("metadata", "uid", to="1234"),
    "no-metadata": _drop("metadata"),
    "odd-metadata": _set("metadata", to="odd"),
    "null-metadata": _set("metadata", to=None),
    "odd-labels": _set("metadata", "labels", to="odd"),
    "number-label": _set("metadata", "labels", to={"a": 1}),
    "bad-label": _set("metadata", "labels", to={"a b": "c d"}),
    "bad-annotation": _set("metadata", "annotations", to={"a b": "c"}),
    "odd-annotations": _set("metadata", "annotations", to=[1]),
    "null-labels": _set("metadata", "labels", to=None),
    "new-label": _set("metadata", "labels", to={"converted": "yes"}),
    "no-labels": _drop("metadata", "labels"),
    "finalizers": _set("metadata", "finalizers", to=["example.com/x"]),
    "generation": _set("metadata", "generation", to=77),
    "unknown-field": _set("unknown", to={"a": 1}),
    "odd-spec": _set("spec", to="odd"),
    "null-spec": _set("spec", to=None),
    "no-spec": _drop("spec"),
    "status": _set("status", to={"seen": "by the webhook"}),
    "text": lambda obj: "text",
    "null": lambda obj: None,
    "list": lambda obj: [obj],
    "empty": lambda obj: {},
}


def _response(**changes: Any) -> ReviewFault:
    def change(review: Object) -> Object:
        for name, value in changes.items():
            if value is None:
                review["response"].pop(name, None)
            else:
                review["response"][name] = value
        return review

    return change


def _failed(message: str | None, status: str | None = "Failed") -> ReviewFault:
    result = {"message": message, "status": status}
    return _response(result={key: value for key, value in result.items() if value is not None}, convertedObjects=[])


def _without(name: str) -> ReviewFault:
    return lambda review: {key: value for key, value in review.items() if key != name}


def _twice(review: Object) -> Object:
    review["response"]["convertedObjects"] *= 2
    return review


REVIEW_FAULTS: Final[dict[str, ReviewFault]] = {
    "failed": _failed("conversion is not to be had"),
    "failed-silently": _failed(None),
    "failed-empty": _failed("", ""),
    "failure": _failed("it is a failure", "Failure"),
    "no-result": _response(result=None),
    "odd-result": _response(result="odd"),
    "no-uid": _response(uid=None),
    "other-uid": _response(uid="other"),
    "odd-uid": _response(uid=7),
    "no-objects": _response(convertedObjects=None),
    "odd-objects": _response(convertedObjects="odd"),
    "few-objects": _response(convertedObjects=[]),
    "many-objects": _twice,
    "no-response": _without("response"),
    "odd-response": lambda review: {**review, "response": "odd"},
    "null-response": lambda review: {**review, "response": None},
    "untyped": lambda review: {"response": review["response"]},
    "no-review-kind": _without("kind"),
    "no-review-version": _without("apiVersion"),
    "review-kind": lambda review: {**review, "kind": "Other"},
    "review-version": lambda review: {**review, "apiVersion": "apiextensions.k8s.io/v2"},
    "other-review-version": lambda review: {
        **review,
        "apiVersion": "apiextensions.k8s.io/" + ("v1" if review["apiVersion"].endswith("beta1") else "v1beta1"),
    },
    "review-status": lambda review: {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "a Status of its own",
        "code": 409,
    },
    "review-list": lambda review: [review],
    "review-text": lambda review: "text",
    "review-null": lambda review: None,
}


def _patched(operations: Any, kind: str | None = "JSONPatch") -> ReviewFault:
    text = operations if isinstance(operations, str) else json.dumps(operations)
    return _response(patch=base64.b64encode(text.encode()).decode(), patchType=kind)


_LABEL: Final = [{"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}]
# Answers to an AdmissionReview.
ADMISSION: Final[dict[str, ReviewFault]] = {
    "deny": _response(allowed=False),
    "deny-message": _response(allowed=False, status={"message": "not today"}),
    "deny-reason": _response(allowed=False, status={"reason": "Conflict"}),
    "deny-code": _response(allowed=False, status={"message": "teapot", "code": 418}),
    "deny-full": _response(
        allowed=False,
        status={
            "status": "Success",
            "message": "all of it",
            "reason": "Invalid",
            "code": 422,
            "details": {"name": "n", "causes": [{"field": "a", "message": "b", "reason": "FieldValueInvalid"}]},
            "metadata": {"resourceVersion": "1"},
        },
    ),
    "deny-200": _response(allowed=False, status={"message": "fine", "code": 200}),
    "warns": _response(warnings=["careful", "very"]),
    "warns-much": _response(warnings=["x" * 300, "y" * 5000, "new\nline", ""]),
    "deny-warns": _response(allowed=False, warnings=["careful"]),
    "annotates": _response(auditAnnotations={"a": "b", "c/d": "e"}),
    "no-allowed": _response(allowed=None),
    "odd-allowed": _response(allowed="yes"),
    "odd-status": _response(status="odd"),
    "odd-warnings": _response(warnings="odd"),
    "patches": _patched(_LABEL),
    "patch-no-type": _patched(_LABEL, None),
    "patch-other-type": _patched(_LABEL, "MergePatch"),
    "patch-empty-type": _patched(_LABEL, ""),
    "patch-no-json": _patched("{oops"),
    "patch-no-list": _patched({"a": 1}),
    "patch-missing": _patched([{"op": "remove", "path": "/metadata/nothing"}]),
    "patch-test": _patched([{"op": "test", "path": "/metadata/name", "value": "other"}]),
    "patch-odd-field": _patched([{"op": "add", "path": "/data", "value": 7}]),
    "patch-unknown-field": _patched([{"op": "add", "path": "/nothing", "value": 7}]),
    "patch-name": _patched([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
    "patch-kind": _patched([{"op": "replace", "path": "/kind", "value": "Secret"}]),
    "patch-odd-op": _patched([{"op": "grow", "path": "/a"}]),
    "patch-root": _patched([{"op": "replace", "path": "", "value": []}]),
    "patch-index": _patched([{"op": "add", "path": "/metadata/finalizers/5", "value": "a/b"}]),
    "patch-word-for-index": _patched(
        [
            {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]},
            {"op": "add", "path": "/metadata/finalizers/x", "value": "a/b"},
        ]
    ),
    "patch-far-index": _patched(
        [
            {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]},
            {"op": "remove", "path": "/metadata/finalizers/9"},
        ]
    ),
    "patch-gone-index": _patched(
        [
            {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]},
            {"op": "replace", "path": "/metadata/finalizers/9", "value": "a/c"},
        ]
    ),
    "patch-move-nothing": _patched([{"op": "move", "from": "/metadata/nothing", "path": "/metadata/labels"}]),
    "patch-move-nowhere": _patched([{"op": "move", "from": "/metadata/name", "path": "/nothing/deeper"}]),
    "patch-copy-no-from": _patched([{"op": "copy", "path": "/metadata/labels"}]),
    "patch-copy-nowhere": _patched([{"op": "copy", "from": "/metadata/name", "path": "nothing"}]),
    "patch-number-path": _patched([{"op": "replace", "path": 5, "value": 1}]),
    "patch-no-path": _patched([{"op": "add", "value": 1}]),
    "patch-scalar-root": _patched([{"op": "replace", "path": "", "value": 5}]),
    "patch-version-object": _patched([{"op": "replace", "path": "/apiVersion", "value": {}}]),
    "patch-unknown-kind": _patched([{"op": "replace", "path": "/kind", "value": "Nothing"}]),
    "patch-uid": _patched([{"op": "add", "path": "/metadata/uid", "value": "1234"}]),
    "patch-namespace": _patched([{"op": "add", "path": "/metadata/namespace", "value": "other"}]),
    "patch-revision": _patched([{"op": "add", "path": "/metadata/resourceVersion", "value": "5"}]),
    "patch-two-mistakes": _patched(
        [
            {"op": "add", "path": "/metadata/ownerReferences", "value": "x"},
            {"op": "add", "path": "/metadata/generation", "value": True},
        ]
    ),
    "deny-retry": _response(allowed=False, status={"code": 429, "details": {"retryAfterSeconds": 7, "causes": []}}),
    "deny-kind": _response(allowed=False, status={"kind": "Other", "apiVersion": "v9", "reason": "Odd", "unknown": 1}),
    "deny-negative": _response(allowed=False, status={"code": -1, "message": "\u0000\u001b[31m"}),
    "odd-code": _response(allowed=False, status={"code": "x"}),
    "odd-details": _response(allowed=False, status={"details": {"causes": "x"}}),
    "odd-patch-type": _response(patch="W10=", patchType={}),
    "odd-annotations-of-audit": _response(auditAnnotations={"a": 1}),
    "odd-warning": _response(warnings=["a", 1]),
    "patch-no-base64": _response(patch="%%%", patchType="JSONPatch"),
    "type-no-patch": _response(patchType="JSONPatch"),
    "other-group-version": lambda review: {**review, "apiVersion": "admission.k8s.io/v1beta1"},
    "strange-version": lambda review: {**review, "apiVersion": "admission.k8s.io/v7"},
}
# (status, content type, body)
RAW: Final[dict[str, tuple[int, str, bytes]]] = {
    "no-json": (200, "application/json", b"{oops"),
    "nothing": (200, "application/json", b""),
    "words": (200, "text/plain", b"hello"),
    "html": (200, "text/html", b"<html></html>"),
    "malformed": (200, "application/json", b"malformed"),
    "400": (400, "text/plain", b"bad"),
    "401": (401, "text/plain", b"who"),
    "403": (403, "text/plain", b"no"),
    "404": (404, "text/plain", b"not found"),
    "409": (409, "text/plain", b"conflict"),
    "418": (418, "text/plain", b"teapot"),
    "422": (422, "application/json", b"{}"),
    "429": (429, "text/plain", b"slowly"),
    "500": (500, "text/plain", b"broken\n"),
    "500-json": (500, "application/json", b'{"a":1}'),
    "503": (503, "text/plain", b"later"),
    "204": (204, "application/json", b""),
    "302": (302, "text/plain", b"elsewhere"),
    "huge": (200, "application/json", b'{"a":"' + b"x" * 4_000_000 + b'"}'),
    "500-status": (
        500,
        "application/json",
        b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a Status","reason":"InternalError","code":500}',
    ),
}
_ONLY_ADMISSION: Final = frozenset(("302", "huge"))
FAULTS: Final = (*OBJECT_FAULTS, *REVIEW_FAULTS, *(name for name in RAW if name not in _ONLY_ADMISSION), "closes")


class Webhook(TLSServer):
    """Runs in a thread, as a context manager. `fault` is one for all paths while it is set; `calls` counts. A path with a plan is
    answered by it, and what it was asked is kept: (path, request)."""

    def __init__(self) -> None:
        self.calls = 0
        self.plans: dict[str, ReviewFault] = {}
        self.asked: list[tuple[str, Object]] = []
        super().__init__(_handler(self))
        self.url = f"https://127.0.0.1:{self.port}"

    def filled(self, text: str) -> str:
        """A request with `${webhook}` (its URL), `${webhookPort}` and `${caBundle}` replaced."""
        found = text.replace("${webhook}", self.url).replace("${caBundle}", self.ca_bundle)
        return found.replace('"${webhookPort}"', str(self.port))

    def hidden(self, text: str) -> str:
        """An answer without what changes with each start."""
        found = text.replace(self.url, _SHOWN).replace(self.ca_bundle, _SHOWN_BUNDLE)
        return found.replace(f".svc:{self.port}", ".svc:PORT").replace(f'"port": {self.port}', '"port": 1')


def _handler(webhook: Webhook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            path = self.path.partition("?")[0].strip("/")
            mode = webhook.fault or path
            webhook.calls += 1
            review = json.loads(data)
            if (plan := webhook.plans.get(path)) is not None:
                webhook.asked.append((self.path, {**review, "request": {**review["request"], "uid": "UID"}}))
                found = plan(answer(review, ""))
                if isinstance(found, str):  # a fault's name
                    mode = found
                else:
                    mode = ""
                    self._say(200, "application/json", json.dumps(found).encode())
                    return
            if mode in RAW:
                self._say(*RAW[mode])
            elif mode == "closes":
                self.close_connection = True
            elif mode == "late":
                time.sleep(_LATE)
                self.close_connection = True
            else:
                self._say(200, "application/json", json.dumps(answer(review, mode)).encode())

        def _say(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            if 300 <= status < 400:
                self.send_header("Location", f"{webhook.url}/allow")
            self.end_headers()
            with suppress(OSError):  # who has read enough hangs up
                self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    return Handler


def answer(review: Object, mode: str) -> Any:
    """The review that answers one, faulty as `mode` says."""
    request = review["request"]
    if review["kind"] == "AdmissionReview":
        found = {**review, "request": None, "response": {"uid": request["uid"], "allowed": True}}
        fault = ADMISSION.get(mode) or REVIEW_FAULTS.get(mode)
        return fault(found) if fault else found
    converted = [converted_object(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
    for i, obj in enumerate(converted):
        own = (obj.get("spec") or {}).get("mode", "") if isinstance(obj.get("spec"), dict) else ""
        fault = OBJECT_FAULTS.get(mode) or OBJECT_FAULTS.get(own)
        if fault:
            converted[i] = fault(obj)
        elif own in REVIEW_FAULTS:
            mode = own
    found = {
        "kind": "ConversionReview",
        "apiVersion": review["apiVersion"],
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted},
    }
    return REVIEW_FAULTS[mode](found) if mode in REVIEW_FAULTS else found


_ONLY: Final = {"onlyV1": "v1", "onlyV2": "v2", "onlyV3": "v3"}


def converted_object(obj: Object, api_version: str) -> Object:
    """A copy in the other version. Fields of one version only become annotations in the others and come back."""
    found = copy.deepcopy(obj)
    version = api_version.rpartition("/")[2]
    found["apiVersion"] = api_version
    spec = found.get("spec")
    meta = found.setdefault("metadata", {})
    annotations = dict(meta.get("annotations") or {})
    if isinstance(spec, dict):
        if "size" in spec:
            size = spec["size"]
            spec["size"] = str(size) if version == "v2" else int(size) if str(size).lstrip("-").isdigit() else 0
        for name, home in _ONLY.items():
            key = f"example.com/{name}"
            if version == home and key in annotations:
                spec[name] = annotations.pop(key)
            elif version != home and name in spec:
                annotations[key] = spec.pop(name)
    meta.pop("annotations", None)
    if annotations:
        meta["annotations"] = annotations
    return found
