"""The fields of a pod that its containers may get in variables and in files (downward API).

Upstream: pkg/apis/core/validation/validation.go (validateObjectFieldSelector, validateContainerResourceFieldSelector),
pkg/apis/core/pods/helpers.go, pkg/fieldpath/fieldpath.go.
"""

from collections.abc import Collection, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.core.resource_list import quantity

_LABELS: Final = frozenset(
    (
        *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"),
        *("spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName"),
        *("status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    )
)
_RESOURCES: Final = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_BYTES: Final = (
    *("1", "1k", "1M", "1G", "1T", "1P", "1E"),
    *("1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
)
_DIVISORS: Final[dict[str, tuple[Collection[str], str]]] = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu resource"),
    "memory": (_BYTES, f"{', '.join(_BYTES)} are supported with the memory resource"),
    "ephemeral-storage": (_BYTES, f"{', '.join(_BYTES)} are supported with the local ephemeral storage resource"),
    "hugepages-": (_BYTES, f"{', '.join(_BYTES)} are supported with the hugepages resource"),
}


def field_ref_errors(reference: Object, known: Sequence[str], path: Path) -> ErrorList:
    """The errors in a fieldRef. `known` are the fields that may be named here, sorted."""
    version, label = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [field.required(path.child("apiVersion"))]
    if not label:
        return [field.required(path.child("fieldPath"))]
    at = path.child("fieldPath")
    owner, key = _split(label)
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif key is not None and owner not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {label}"
    elif key is None and label not in _LABELS and label != "spec.host":
        problem = f"field label not supported: {label}"
    elif key is not None:
        return name_errors(key.lower() if owner == "metadata.annotations" else key, names.is_qualified_name, path)
    else:
        # An old name, of before v1.
        label = "spec.nodeName" if label == "spec.host" else label
        return [] if label in known else [field.not_supported_text(at, label, known)]
    return [field.invalid(at, label, f"error converting fieldPath: {problem}")]


def _split(label: str) -> tuple[str, str | None]:
    """`metadata.labels['app']` -> `metadata.labels`, `app`; without a key None."""
    owner, bracket, key = label.removesuffix("']").partition("['")
    return (owner, key) if label.endswith("']") and bracket and owner else (label, None)


def resource_ref_errors(reference: Object, path: Path, *, in_volume: bool) -> ErrorList:
    """The errors in a resourceFieldRef. A volume belongs to no container, so its references must name one."""
    name = reference.get("resource", "")
    errors: ErrorList = []
    if in_volume and not reference.get("containerName"):
        errors.append(field.required(path.child("containerName")))
    elif not name:
        errors.append(field.required(path.child("resource")))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        errors.append(field.not_supported_text(path.child("resource"), name, _RESOURCES))
    return errors + _divisor_errors(name, reference.get("divisor", "0"), path.child("divisor"))


def _divisor_errors(name: str, divisor: str, path: Path) -> ErrorList:
    if quantity(divisor) == 0:
        return []
    resource = "hugepages-" if name.startswith(_HUGE_PAGES) else name.partition(".")[2] if name in _RESOURCES else ""
    allowed, choices_text = _DIVISORS.get(resource, ((divisor,), ""))
    return [] if divisor in allowed else [field.invalid(path, name, f"only divisor's values {choices_text}")]
