"""Table cells that several kinds share.

Upstream: pkg/printers/internalversion/printers.go, k8s.io/apimachinery/pkg/labels/labels.go.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.printing import translate_timestamp_since

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def age(obj: Object, now: float) -> str:
    """The age of the object (`5m`)."""
    return translate_timestamp_since(metadata(obj).get("creationTimestamp"), now)


def or_none(value: object) -> str:
    return str(value) if value else NONE


def format_labels(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, sorted by key; `<none>` without labels."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def container_cells(template: Object | None) -> list[object]:
    """The names and the images of a pod template's containers, each as one text."""
    containers: Iterable[Object] = ((template or {}).get("spec") or {}).get("containers") or ()
    return [",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)]


def access_modes(modes: Iterable[str] | None) -> str:
    present = set(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in present)


def storage_class(obj: Object) -> str:
    """The storage class of a volume or a claim. The annotation, which is older than the field, takes precedence."""
    annotations = metadata(obj).get("annotations") or {}
    annotated = annotations.get("volume.beta.kubernetes.io/storage-class")
    return str(annotated if annotated is not None else (obj.get("spec") or {}).get("storageClassName", ""))
