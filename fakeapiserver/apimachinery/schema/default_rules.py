"""Defaults in a CRD's schema must fit that schema, specified fields only, and give valid metadata.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/{validation,surroundingobject}.go
"""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

from fakeapiserver.apimachinery.cel import validator as validator_module
from fakeapiserver.apimachinery.field import ErrorList, Path, invalid
from fakeapiserver.apimachinery.schema.embedded import DecodeMetadata, Malformed, coerce, validate_embedded
from fakeapiserver.apimachinery.schema.prune import prune
from fakeapiserver.apimachinery.schema.resolve import Schema, has_rules
from fakeapiserver.apimachinery.schema.validate import Validator, placed, validate_object
from fakeapiserver.apimachinery.schema.validate_value import sorted_value
from fakeapiserver.languages.cel.versions import NEWEST

# Puts a value where a schema stands: the object around it.
_Surround = Callable[[Any], dict[str, Any]]

_META_FIELDS: Final = ("metadata", "apiVersion", "kind")


def default_errors(schema: Schema, path: Path, decode: DecodeMetadata, version: str = NEWEST) -> ErrorList:
    """Returns the errors of the defaults in a structural schema at `path`, in a Kubernetes version."""
    root = {**schema, "x-kubernetes-embedded-resource": True}
    return _Checker(decode, version).check(root, path, root, _resource, inside_metadata=False)


def coerce_defaults(schema: Schema, decode: DecodeMetadata) -> None:
    """Drops unknown metadata from the resources in defaults, in place, as upstream does while it validates them.

    Defaults that can't be decoded stay: validation reports them.
    """
    if schema.get("default") is not None:
        value = deepcopy(schema["default"])
        with suppress(Malformed):
            coerce(value, schema, decode, Path())
            schema["default"] = value
    if isinstance(items := schema.get("items"), dict):
        coerce_defaults(items, decode)
    for key, sub in schema.get("properties", {}).items():
        if not (key in _META_FIELDS and schema.get("x-kubernetes-embedded-resource")):
            coerce_defaults(sub, decode)


def _value_errors(schema: Schema, value: Any, at: Path, version: str) -> ErrorList:
    return placed(validate_object(Validator(_unmarked(schema), version, any_format=True), value), at)


def _unmarked(value: Any) -> Any:
    """Returns the value without x-kubernetes-int-or-string, which upstream ignores in defaults."""
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "x-kubernetes-int-or-string"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def _resource(value: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "validation/v1", "kind": "Validation", **value}


def _field(surround: _Surround, key: str) -> _Surround:
    return lambda value: surround({key: value})


class _OutOfBudget(Exception):
    """The rules of the defaults so far have cost all that there is; no further default is looked at."""


class _Checker:
    def __init__(self, decode: DecodeMetadata, version: str) -> None:
        self._decode = decode
        self._version = version
        # What rules may still cost, None before the first rule.
        self._budget: int | None = None

    def check(
        self, schema: Schema, path: Path, root: Schema, surround: _Surround, *, inside_metadata: bool
    ) -> ErrorList:
        """`root` is the schema of the innermost resource around, `surround` makes such a resource of a value here."""
        if schema.get("x-kubernetes-embedded-resource"):
            inside_metadata, surround, root = False, _resource, schema
        errors: ErrorList = []
        if schema.get("default") is not None:
            at = path.child("default")
            if inside_metadata:
                errors += self._in_metadata(schema, at, root, surround)
            else:
                errors += self._plain(schema, at, is_resource=schema is root)
        # Not below additionalProperties: there can't be any.
        if isinstance(items := schema.get("items"), dict):
            at = path.child("items")
            errors += self.check(items, at, root, lambda value: surround([value]), inside_metadata=inside_metadata)
        for key, sub in schema.get("properties", {}).items():
            inside = inside_metadata or (key in _META_FIELDS and bool(schema.get("x-kubernetes-embedded-resource")))
            around = _field(surround, key)
            errors += self.check(sub, path.child("properties").key(key), root, around, inside_metadata=inside)
        return errors

    def _in_metadata(self, schema: Schema, at: Path, root: Schema, surround: _Surround) -> ErrorList:
        value = schema["default"]
        obj = surround(deepcopy(value))
        try:
            coerce(obj, root, self._decode, Path())
        except Malformed as error:
            return [invalid(at, sorted_value(value), f"must result in valid metadata: {error}")]
        if errors := validate_embedded(obj, root, self._decode, Path()):
            texts = list(dict.fromkeys(map(str, errors)))
            told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            return [invalid(at, sorted_value(value), f"must result in valid metadata: {told}")]
        errors = _value_errors(schema, value, at, self._version)
        return errors or self._rule_errors(schema, value, at, is_resource=schema is root)

    def _plain(self, schema: Schema, at: Path, *, is_resource: bool) -> ErrorList:
        value = deepcopy(schema["default"])
        embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        errors: ErrorList = []
        prune(value, schema, is_resource=embedded)
        if value != schema["default"]:
            errors.append(invalid(at, sorted_value(schema["default"]), "must not have unknown fields"))
        value = deepcopy(schema["default"])
        try:
            coerce(value, schema, self._decode, at)
        except Malformed as malformed:
            return [*errors, malformed.error]
        value_problems = validate_embedded(value, schema, self._decode, at)
        value_problems = value_problems or _value_errors(schema, value, at, self._version)
        return errors + (value_problems or self._rule_errors(schema, value, at, is_resource=is_resource))

    def _rule_errors(self, schema: Schema, value: Any, at: Path, *, is_resource: bool) -> ErrorList:
        """A default must fit its rules as a value that stays, and as one that is new."""
        if not has_rules(schema):
            return []

        validator = validator_module.Validator(schema, self._version, is_resource=is_resource)
        budget = validator_module.BUDGET if self._budget is None else self._budget
        stays = validator.run(value, value, at, budget)
        runs = [stays] if stays.errors else [stays, validator.run(value, None, at, budget)]
        self._budget = min(run.budget for run in runs)
        return [error for run in runs for error in run.errors]
