"""JSON merge patch (RFC 7386) with the rules of the library kube-apiserver uses.

Upstream: gopkg.in/evanphx/json-patch.v4/merge.go, k8s.io/apiserver/pkg/endpoints/handlers/patch.go (jsonPatcher).
"""

from typing import Any

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.errors import new_bad_request


def apply(doc: Any, patch: Any) -> Any:
    """The document with the patch merged in; both stay as they are, and the result shares what did not change with them.

    Nulls in the patch delete members. Lists are replaced; nulls among their elements stay, nulls in objects inside them go.
    Raises StatusError 400 for a patch that is neither an object nor a list (a list becomes the document).
    """
    if not isinstance(patch, dict | list):
        raise new_bad_request("Invalid JSON Patch")
    if isinstance(patch, dict) and isinstance(doc, dict):
        return _merge(doc, patch)
    return without_nulls(patch)


def _merge(doc: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = doc.copy()
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
            continue
        current = merged.get(key)
        if not isinstance(current, dict):
            merged[key] = without_nulls(value)
            continue
        # What replaces an object is taken as it is, nulls deep inside it included.
        try:
            merged[key] = _merge(current, value) if isinstance(value, dict) else value
        except RecursionError:
            return continued(_merge, doc, patch)
    return merged


def without_nulls(value: Any) -> Any:
    """Returns the value without the members of its objects that are null."""
    try:
        if isinstance(value, dict):
            return {key: without_nulls(item) for key, item in value.items() if item is not None}
        if isinstance(value, list):
            return [without_nulls(item) for item in value]
    except RecursionError:
        return continued(without_nulls, value)
    return value
