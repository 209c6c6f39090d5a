"""Access to an object's metadata. Objects are plain JSON dicts in wire case (upstream: k8s.io/apimachinery/pkg/api/meta)."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.errors import new_bad_request

# A Kubernetes object as decoded JSON; FrozenObject where it must not be changed.
Object = dict[str, Any]
FrozenObject = Mapping[str, Any]
# Field names from the object down; "*" stands for every item of a list.
FieldPath = tuple[str, ...]
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


def same(a: Any, b: Any, *, exact: bool = False) -> bool:
    """Reports whether two JSON values are equal. Python takes true for 1, and what has no schema may change from one to the other. `exact`:
    1.0 isn't 1 either. Otherwise an integer is compared with a float as one.
    """
    try:
        if isinstance(a, dict) and isinstance(b, dict):
            if len(a) != len(b):
                return False
            for key, value in a.items():  # noqa: SIM110  # a generator would be another frame of each level
                if key not in b or not same(value, b[key], exact=exact):
                    return False
            return True
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            for left, right in zip(a, b, strict=True):  # noqa: SIM110
                if not same(left, right, exact=exact):
                    return False
            return True
    except RecursionError:
        return continued(same, a, b, exact=exact)
    if a.__class__ is not b.__class__:
        if exact or bool in (a.__class__, b.__class__):
            return False
        if isinstance(a, int | float) and isinstance(b, int | float):
            return float(a) == float(b)
    return bool(a == b)


def equal(a: Any, b: Any) -> bool:
    """Reports whether two JSON values are equal for Python, whatever their depth."""
    try:
        return bool(a == b)
    except RecursionError:
        return same(a, b)


def copied(value: Any) -> Any:
    """Returns a deep copy of a JSON value. `copy.deepcopy`, which knows subclasses of dict, takes ten times as long."""
    try:
        if value.__class__ is dict:
            return {key: copied(item) if item.__class__ not in _SCALARS else item for key, item in value.items()}
        if value.__class__ is list:
            return [copied(item) if item.__class__ not in _SCALARS else item for item in value]
    except RecursionError:
        return continued(copied, value)
    return value if value.__class__ in _SCALARS else deepcopy(value)


def metadata(obj: Object) -> Object:
    """The object's metadata; an empty dict that is not part of the object where it has none."""
    meta = obj.get("metadata")
    return meta if isinstance(meta, dict) else {}


def name(obj: Object) -> str:
    return str(metadata(obj).get("name", ""))


def namespace(obj: Object) -> str:
    return str(metadata(obj).get("namespace", ""))


def uid(obj: Object) -> str:
    return str(metadata(obj).get("uid", ""))


def resource_version(obj: Object) -> str:
    return str(metadata(obj).get("resourceVersion", ""))


def labels(obj: Object) -> dict[str, str]:
    labels: dict[str, str] | None = metadata(obj).get("labels")
    return labels or {}


def annotations(obj: Object) -> dict[str, str]:
    annotations: dict[str, str] | None = metadata(obj).get("annotations")
    return annotations or {}


def finalizers(obj: Object) -> list[str]:
    finalizers: list[str] | None = metadata(obj).get("finalizers")
    return finalizers or []


def owner_references(obj: Object) -> list[Object]:
    references: list[Object] | None = metadata(obj).get("ownerReferences")
    return references or []


def dedup_owner_references(meta: Object, when: str = "") -> str:
    """Drops owners that are named twice, in place. Returns a warning about them, or "".

    `when` is put after "entries" (upstream: dedupOwnerReferences in k8s.io/apiserver/pkg/endpoints/handlers/rest.go).
    """
    references = meta.get("ownerReferences")
    if not references or len(references) < 2:
        return ""
    kept: dict[bytes, Object] = {}
    duplicates: list[str] = []
    for reference in references:
        text = msgspec.json.encode(reference, order="deterministic")
        if kept.setdefault(text, reference) is not reference:
            duplicates.append(str(reference.get("uid", "")))
    if not duplicates:
        return ""
    meta["ownerReferences"] = list(kept.values())
    return (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
        f"reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {', '.join(duplicates)}"
    )


def is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in metadata(obj)


def ensure_namespace(meta: Object, namespace: str) -> None:
    """Puts the request's namespace (empty: the kind has none) into the object's metadata; StatusError 400 where the object
    names another one (upstream: EnsureObjectNamespaceMatchesRequestNamespace)."""
    if not namespace:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", namespace) != namespace:
        if meta["namespace"]:
            raise new_bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        meta["namespace"] = namespace
