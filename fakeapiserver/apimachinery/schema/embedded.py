"""Resources inside resources: x-kubernetes-embedded-resource asks for an apiVersion and a kind.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go
"""

import re
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList, Path, invalid, required
from fakeapiserver.apimachinery.schema.resolve import Schema

_LABEL: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_WRONG_KIND: Final = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters "
    "or '-', start with an alphabetic character, and end with an alphanumeric character "
    "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def validate_embedded(value: Any, schema: Schema, path: Path) -> ErrorList:
    """The type of every embedded resource below a value. Its metadata is not looked at."""
    errors: ErrorList = []
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            errors += _validate_type(value, path)
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, item in value.items():
            if not isinstance(item, dict | list):
                continue
            if key in properties:
                errors += validate_embedded(item, properties[key], path.child(key))
            elif isinstance(others, dict):
                errors += validate_embedded(item, others, path.key(key))
    elif isinstance(value, list) and (items := schema.get("items")):
        for i, item in enumerate(value):
            errors += validate_embedded(item, items, path.index(i))
    return errors


def _validate_type(value: dict[str, Any], path: Path) -> ErrorList:
    errors: ErrorList = [required(path.child(key)) for key in ("apiVersion", "kind") if key not in value]
    for key in ("apiVersion", "kind"):
        if key not in value:
            continue
        text = value[key]
        if not isinstance(text, str):
            errors.append(invalid(path.child(key), text, "must be a string"))
        elif not text:
            errors.append(invalid(path.child(key), text, "must not be empty"))
        elif key == "kind" and not _LABEL.fullmatch(text.lower()):
            errors.append(invalid(path.child(key), text, _WRONG_KIND))
        elif key == "apiVersion" and text.count("/") > 1:
            errors.append(invalid(path.child(key), text, f"unexpected GroupVersion string: {text}"))
    return errors
