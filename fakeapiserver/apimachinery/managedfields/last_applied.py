"""The client-side apply annotation: conflicts it excuses for kubectl, and keeping it up to date.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal (lastappliedmanager.go, lastappliedupdater.go).
"""

import json
from typing import Final

from fakeapiserver.apimachinery.managedfields.compare import compare, to_fieldset
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, difference
from fakeapiserver.apimachinery.managedfields.typed import NoPathElement, TypedSchema
from fakeapiserver.apimachinery.managedfields.validate import validate
from fakeapiserver.apimachinery.meta import Object, annotations
from fakeapiserver.apimachinery.serializer.json import encode_plainly_sorted

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_LIMIT: Final = 256 * 1024


def allowed_conflicts(live: Object, schema: TypedSchema, api_version: str) -> FieldSet:
    """Fields that client-side apply set and that still hold what it set: kubectl may take them over."""
    try:
        last = json.loads(annotations(live).get(LAST_APPLIED, ""))
        if last.get("apiVersion") != api_version or validate(last, schema) or validate(live, schema):
            return {}
        fields = to_fieldset(last, schema)
        added, modified, removed = compare(last, live, schema)
    except (ValueError, AttributeError, NoPathElement):
        return {}
    return difference(difference(difference(fields, modified), added), removed)


def refresh_last_applied(obj: Object, applied: Object) -> Object:
    """The object with the annotation, if it has one, telling what was just applied."""
    existing = annotations(obj)
    if not existing.get(LAST_APPLIED):
        return obj
    text = _last_applied(applied)
    others = {key: value for key, value in existing.items() if key != LAST_APPLIED}
    size = sum(len(key) + len(value) for key, value in others.items()) + len(LAST_APPLIED) + len(text)
    new = others | {LAST_APPLIED: text} if size <= _ANNOTATIONS_LIMIT else others
    return dict(obj, metadata=dict(obj["metadata"], annotations=new))


def _last_applied(applied: Object) -> str:
    meta = dict(applied.get("metadata") or {})
    if isinstance(meta.get("annotations"), dict):
        meta["annotations"] = {key: value for key, value in meta["annotations"].items() if key != LAST_APPLIED}
    else:
        meta.pop("annotations", None)
    text = encode_plainly_sorted(dict(applied, metadata=meta)).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n"
