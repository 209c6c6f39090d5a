"""Structural schemas of custom resources: prune, default, validate.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema, pkg/registry/customresource/strategy.go

    widget = compile_structural({"type": "object", "properties": {"spec": {"type": "object", "properties": {...}}}})
    widget.prune(obj)        # ['unknown field "spec.foo"']
    widget.default(obj)
    widget.validate(obj)     # [Error(...), ...]
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeapiserver.apimachinery.cel import validator
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.schema import default, prune
from fakeapiserver.apimachinery.schema.embedded import (
    DecodeMetadata,
    Malformed,
    coerce,
    has_embedded,
    validate_embedded,
)
from fakeapiserver.apimachinery.schema.list_type import leading_to_unique_lists, validate_lists
from fakeapiserver.apimachinery.schema.resolve import Schema, has_rules
from fakeapiserver.apimachinery.schema.validate import UNCORRELATED, Validator, placed, validate_object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.languages.cel.versions import NEWEST

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.cel.validator import Validator as RuleValidator


def _any_metadata(_: dict[str, Any]) -> list[str]:
    """Takes a resource's metadata as it is."""
    return []


class StructuralType:
    """A custom resource's version. Nothing is compiled before the first object needs it."""

    __slots__ = (
        "_decode_metadata",
        "_has_embedded",
        "_lists",
        "_rules",
        "_schema",
        "_status",
        "_validator",
        "_version",
        "has_rules",
    )

    def __init__(self, schema: Schema, decode_metadata: DecodeMetadata, version: str) -> None:
        self._version = version
        self._schema = schema
        self._decode_metadata = decode_metadata
        self._has_embedded = has_embedded(schema)
        self._lists = leading_to_unique_lists(schema)
        self.has_rules = has_rules(schema)
        self._rules: RuleValidator | None = None
        self._validator = Validator(schema, version)
        status = schema.get("properties", {}).get("status")
        self._status = Validator(status, version) if status is not None else None

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Drops unspecified fields, and nulls that may not be, in place; returns the former (`unknown field "spec.foo"`),
        sorted by path. ValueError for a resource inside that can't be decoded."""
        unknown = prune.prune(obj, self._schema)
        default.drop_nulls(obj, self._schema)
        if self._has_embedded:
            unknown += sorted(coerce(obj, self._schema, self._decode_metadata, Path()))
        return [f'unknown field "{path}"' for path in unknown]

    def coerce(self, obj: dict[str, Any]) -> None:
        """Decodes the metadata of the resources inside, in place. What can't be decoded is left for validation to refuse."""
        if self._has_embedded:
            with suppress(Malformed):
                coerce(obj, self._schema, self._decode_metadata, Path())

    def default(self, obj: dict[str, Any]) -> None:
        """Applies the schema's defaults in place; nulls the schema does not allow count as absent."""
        default.default(obj, self._schema)

    def restore(self, obj: dict[str, Any]) -> None:
        """Changes a validated object into what reading it from storage returns.

        Nulls that are not allowed are removed in place, and a status is added if it has a default.
        """
        if b"null" in json.encode_plainly(obj):  # rare, and a large object is soon encoded
            default.drop_nulls(obj, self._schema)
        elif "status" in obj or not default.presets_status(self._schema):
            return
        default.default(obj, self._schema)

    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> ErrorList:
        """Returns an object's errors, in upstream's order."""
        return self.value_errors(obj, old) + self.embedded_errors(obj) + self.list_errors(obj, old)

    def value_errors(self, obj: dict[str, Any], old: dict[str, Any] | None) -> ErrorList:
        """Values that don't fit the schema. `old` is the stored object of an update: what was wrong there and did not
        change is let pass."""
        return validate_object(self._validator, obj, UNCORRELATED if old is None else old)

    def status_errors(self, obj: dict[str, Any], old: dict[str, Any]) -> ErrorList:
        """Returns what value_errors does, for the status alone."""
        if self._status is None:
            return []
        return placed(validate_object(self._status, obj["status"], old.get("status", UNCORRELATED)), Path("status"))

    def embedded_errors(self, obj: dict[str, Any]) -> ErrorList:
        """Returns the errors in the type and metadata of embedded resources."""
        return validate_embedded(obj, self._schema, self._decode_metadata, Path()) if self._has_embedded else []

    def list_errors(self, obj: dict[str, Any], old: dict[str, Any] | None) -> ErrorList:
        """Duplicates in sets and maps, unless there were some before."""
        if not self._lists:
            return []
        errors = validate_lists(obj, self._lists, Path())
        return errors if errors and (old is None or not validate_lists(old, self._lists, Path())) else []

    def rule_errors(
        self, obj: dict[str, Any], old: dict[str, Any] | None, errors: ErrorList
    ) -> tuple[ErrorList, list[str]]:
        """Returns the refusals of x-kubernetes-validations, and warnings for rules that the old object broke already.

        errors: those so far, some of which keep rules from being run.
        """
        if not self.has_rules:
            return [], []

        if validator.blocking(errors):
            return [validator.blocked()], []
        if self._rules is None:
            self._rules = validator.Validator(self._schema, self._version, is_resource=True)
        return self._rules.validate(obj, old, is_update=old is not None)


def compile_structural(
    open_api_v3_schema: Schema, decode_metadata: DecodeMetadata = _any_metadata, version: str = NEWEST
) -> StructuralType:
    """The type of a CRD version's openAPIV3Schema, which must not be changed afterwards. `version`: Kubernetes's."""
    return StructuralType(open_api_v3_schema, decode_metadata, version)
