"""The fields that field selectors may name, beside a custom resource's name and namespace.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go (ValidateCustomResourceSelectableFields),
pkg/apiserver/schema/cel/validation.go (ValidFieldPath)
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList, Path, duplicate, invalid, required, too_many
from fakeapiserver.apimachinery.schema.resolve import Schema

_MOST: Final = 8
_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'?|[.\[\]]|[^.\[\]]+")


def selectable_field_errors(fields: Sequence[Mapping[str, Any]], schema: Schema, path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[Path] = set()
    for i, field in enumerate(fields):
        at, text = path.index(i).child("jsonPath"), field.get("jsonPath", "")
        if not text:
            errors.append(required(at))
            continue
        try:
            names, target = _resolve(text, schema)
        except ValueError as error:
            errors.append(invalid(at, text, f"is an invalid path: {error}"))
            continue
        if names[:1] == ["metadata"]:
            errors.append(invalid(at, text, "must not point to fields in metadata"))
        if target.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are "
                "allowed."
            )
            errors.append(invalid(at, text, detail))
        field_path = Path().child(*names)
        if field_path in seen:
            errors.append(duplicate(at, text))
        seen.add(field_path)
    if len(seen) > _MOST:
        errors.append(too_many(path, len(seen), _MOST))
    return errors


def _resolve(text: str, schema: Schema) -> tuple[list[str], Schema]:
    """The names on a path such as `.spec.color`, and the schema it ends at; ValueError where it leads nowhere."""
    tokens = iter(_TOKEN.findall(text))
    names: list[str] = []
    for token in tokens:
        if token == "[":
            raise ValueError("array notation is not allowed")
        if token != ".":
            raise ValueError(f"expected [ or . but got: {token}")
        name = next(tokens, None)
        if name is None:
            raise ValueError("unexpected end of JSON path")
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        inner = properties.get(name) if properties else others
        if inner is None:
            raise ValueError("does not refer to a valid field")
        schema = inner if isinstance(inner, dict) else {}
        names.append(name)
    return names, schema
