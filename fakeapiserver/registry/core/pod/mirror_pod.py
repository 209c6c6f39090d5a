"""Mirror pods, by which a kubelet shows its static pods to the API: their annotation must match and can't change.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpecificAnnotations, ValidatePodSpecificAnnotationUpdates,
ValidatePodEphemeralContainersUpdate).
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata

ANNOTATION: Final = "kubernetes.io/config.mirror"
_PATH: Final = Path("metadata").child("annotations").key(ANNOTATION)
_UNSUPPORTED: Final = {
    "ephemeralcontainers": "static pods do not support ephemeral containers",
    "resize": "static pods cannot be resized",
}
# How upstream's messages show the empty path.
NOWHERE: Final = "[]"


def is_mirror(pod: Object) -> bool:
    return ANNOTATION in (metadata(pod).get("annotations") or {})


def mirror_errors(pod: Object) -> ErrorList:
    if not is_mirror(pod) or pod["spec"].get("nodeName"):
        return []
    return [
        field.invalid(
            _PATH,
            metadata(pod)["annotations"][ANNOTATION],
            "must set spec.nodeName if mirror pod annotation is set",
        )
    ]


def mirror_update_errors(pod: Object, old: Object) -> ErrorList:
    """The errors in an update of a mirror pod, besides `mirror_errors`, which upstream checks again."""
    now, then = ((metadata(obj).get("annotations") or {}).get(ANNOTATION) for obj in (pod, old))
    errors: ErrorList = []
    if then is None and now is not None:
        errors.append(field.forbidden(_PATH, "may not add mirror pod annotation"))
    elif now != then:
        errors.append(field.forbidden(_PATH, "may not remove or update mirror pod annotation"))
    return errors + mirror_errors(pod)


def subresource_errors(old: Object, subresource: str) -> ErrorList:
    """The error for an update of a mirror pod through a subresource that mirror pods don't support."""
    detail = _UNSUPPORTED.get(subresource)
    return [field.forbidden(NOWHERE, detail)] if detail is not None and is_mirror(old) else []
