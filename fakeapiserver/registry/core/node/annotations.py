"""Taints and pods to avoid, which nodes once had as annotations: what they say is still checked.

Upstream: pkg/apis/core/validation/validation.go (ValidateNodeSpecificAnnotations), pkg/apis/core/v1/helper/helpers.go.
"""

from typing import Any, Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, annotations
from fakeapiserver.apimachinery.serializer import json

TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_ANNOTATIONS: Final = Path("metadata.annotations")
_GO_KINDS: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}


def annotated_taints(node: Object) -> tuple[list[Object], ErrorList]:
    """The taints of the annotation, and the errors in its text."""
    return _read(node, TAINTS, _ANNOTATIONS, list, "[]core.Taint")


def avoided_pods_errors(node: Object) -> ErrorList:
    avoided, errors = _read(node, AVOID_PODS, _ANNOTATIONS.child("AvoidPods"), dict, "v1.AvoidPods")
    for i, entry in enumerate((avoided or {}).get("preferAvoidPods") or ()):
        at = _ANNOTATIONS.child(AVOID_PODS).index(i)
        controller = ((entry or {}).get("podSignature") or {}).get("podController")
        if controller is None:
            errors.append(field.required(at.child("PodSignature")))
        elif controller.get("controller") is False:
            path = at.child("PodSignature", "PodController", "Controller")
            errors.append(field.invalid(path, False, "must point to a controller"))
    return errors


def _read(node: Object, name: str, path: Path, kind: type, go_type: str) -> tuple[Any, ErrorList]:
    """The decoded JSON of an annotation; empty without the annotation, and for JSON of another type."""
    if not (text := annotations(node).get(name)):
        return kind(), []
    try:
        value = json.decode(text.encode())
    except ValueError as error:
        return kind(), [field.invalid(path, name, str(error))]
    if value is not None and not isinstance(value, kind):
        problem = f"json: cannot unmarshal {_GO_KINDS[type(value)]} into Go value of type {go_type}"
        return kind(), [field.invalid(path, name, problem)]
    return value or kind(), []
