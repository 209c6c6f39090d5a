"""Validation of CustomResourceDefinitions.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/{v1/conversion.go,validation/validation.go},
pkg/apihelpers/helpers.go (API approval)

Upstream validates its internal type, where what all versions have in common has moved up from the versions: that is where
errors say they are (`spec.validation.openAPIV3Schema`).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, invalid, json_text, not_supported, required
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.schema.embedded import DecodeMetadata
from fakeapiserver.apimachinery.schema.go_schema import go_validation
from fakeapiserver.apimachinery.schema.schema_rules import validate_schema
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.registry.apiextensions.api_approval import APPROVAL, approval, is_protected
from fakeapiserver.registry.apiextensions.selectable_fields import selectable_field_errors
from fakeapiserver.registry.apiextensions.webhook_conversion import bundle_problem, conversion_errors

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_WARNING_BYTES: Final = 256
# What moves up when all versions have the same.
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


class _Internal(Struct, frozen=True):
    """A definition as upstream's internal type has it: what all versions share, and the versions without it."""

    shared: Mapping[str, Any]
    versions: Sequence[Mapping[str, Any]]
    # Messages show a list that isn't there as null.
    is_nil: bool = False

    def common(self, key: str) -> Any:
        return self.shared.get(key)


def _internal(spec: Object) -> _Internal:
    versions = spec.get("versions")
    if not versions:
        return _Internal({}, [], is_nil=versions is None)
    alike = [key for key in _SHARED if all(version.get(key) == versions[0].get(key) for version in versions)]
    shared = {key: versions[0][key] for key in alike if versions[0].get(key) is not None}
    return _Internal(shared, [{k: v for k, v in version.items() if k not in alike} for version in versions])


def validate_definition(obj: Object, decode: DecodeMetadata, kubernetes: str = NEWEST) -> ErrorList:
    """The errors in a new definition, except those in its metadata, in a version of Kubernetes."""
    return _spec_errors(obj["spec"], decode, kubernetes, established=False) + _end_errors(obj, None)


def validate_definition_update(obj: Object, old: Object, decode: DecodeMetadata, kubernetes: str = NEWEST) -> ErrorList:
    spec, old_spec = obj["spec"], old["spec"]
    established = is_true(old, "Established")
    errors = _spec_errors(spec, decode, kubernetes, established=established and _has_good_bundle(old_spec))
    if established:
        errors += _immutable(_SPEC.child("scope"), spec.get("scope", ""), old_spec.get("scope", ""))
        kind, old_kind = spec["names"].get("kind", ""), old_spec["names"].get("kind", "")
        errors += _immutable(_SPEC.child("names", "kind"), kind, old_kind)
    errors += _immutable(_SPEC.child("group"), spec.get("group", ""), old_spec.get("group", ""))
    plural, old_plural = spec["names"].get("plural", ""), old_spec["names"].get("plural", "")
    errors += _immutable(_SPEC.child("names", "plural"), plural, old_plural)
    return errors + _end_errors(obj, old)


def validate_status(obj: Object) -> ErrorList:
    accepted = (obj.get("status") or {}).get("acceptedNames") or {}
    return _names_errors(accepted, _STATUS.child("acceptedNames"))


def is_true(obj: Object, kind: str) -> bool:
    """Reports whether a condition exists and is true."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


def _has_good_bundle(spec: Object) -> bool:
    """Reports whether the CA bundle is valid, or is an old one, which may stay."""
    client = ((spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    return not client.get("caBundle") or not bundle_problem(client["caBundle"])


def _immutable(path: Path, new: str, old: str) -> ErrorList:
    return [] if new == old else [invalid(path, new, "field is immutable")]


def _end_errors(obj: Object, old: Object | None) -> ErrorList:
    """The errors outside the spec."""
    errors = validate_status(obj) + _stored_version_errors(obj) + _approval_errors(obj, old)
    if obj["spec"].get("preserveUnknownFields") and not (old and old["spec"].get("preserveUnknownFields")):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid(_SPEC.child("preserveUnknownFields"), True, detail))
    return errors


# ----------------------------------------------------------------------- spec


def _spec_errors(spec: Object, decode: DecodeMetadata, kubernetes: str, *, established: bool) -> ErrorList:
    internal = _internal(spec)
    errors = _group_errors(spec.get("group", ""))
    scope = spec.get("scope", "")
    if not scope:
        errors.append(required(_SPEC.child("scope")))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(not_supported(_SPEC.child("scope"), scope, ("Cluster", "Namespaced")))
    errors += _missing_schema_errors(internal)
    preserves = bool(spec.get("preserveUnknownFields"))
    if preserves and any(_has_defaults(version) for version in spec["versions"] or ()):
        detail = "must be false in order to use defaults in the schema"
        errors.append(invalid(_SPEC.child("preserveUnknownFields"), True, detail))
    for i, version in enumerate(internal.versions):
        errors += _version_errors(version, internal, _SPEC.child("versions").index(i), decode, kubernetes)
    errors += _versions_errors(internal)
    first = internal.versions[0].get("name", "") if internal.versions else ""
    if first and (complaints := names.is_dns1035_label(first)):
        errors.append(invalid(_SPEC.child("version"), first, ",".join(complaints)))
    for key in ("plural", "singular", "kind", "listKind"):
        if not spec["names"].get(key):
            errors.append(required(_SPEC.child("names", key)))
    errors += _names_errors(spec["names"], _SPEC.child("names"))
    errors += _shared_errors(internal, decode, kubernetes)
    conversion = spec.get("conversion")
    if preserves and conversion is not None and conversion.get("strategy", "") != "None":
        detail = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid(_SPEC.child("conversion", "strategy"), conversion.get("strategy", ""), detail))
    return errors + conversion_errors(conversion, _SPEC.child("conversion"), checks_bundle=established)


def _group_errors(group: str) -> ErrorList:
    path = _SPEC.child("group")
    if not group:
        return [required(path)]
    if complaints := names.is_dns1123_subdomain(group):
        return [invalid(path, group, ",".join(complaints))]
    return [] if "." in group else [invalid(path, group, "should be a domain with at least one dot")]


def _missing_schema_errors(internal: _Internal) -> ErrorList:
    if _schema_of(internal.common("schema")) is not None:
        return []
    path = _SPEC.child("versions")
    return [
        required(path.index(i).child("schema", "openAPIV3Schema"))
        for i, version in enumerate(internal.versions)
        if _schema_of(version.get("schema")) is None
    ]


def _schema_of(validation: Mapping[str, Any] | None) -> Any:
    return (validation or {}).get("openAPIV3Schema")


def _has_defaults(version: Mapping[str, Any]) -> bool:
    def has(value: Any) -> bool:
        if isinstance(value, dict):
            return value.get("default") is not None or any(map(has, value.values()))
        return isinstance(value, list) and any(map(has, value))

    return has(_schema_of(version.get("schema")))


def _version_errors(
    version: Mapping[str, Any], internal: _Internal, path: Path, decode: DecodeMetadata, kubernetes: str
) -> ErrorList:
    errors: ErrorList = []
    name = version.get("name", "")
    if complaints := names.is_dns1035_label(name):
        errors.append(invalid(path.child("name"), name, ",".join(complaints)))
    errors += _deprecation_errors(version, path.child("deprecationWarning"))
    own = any(other.get("subresources") is not None for other in internal.versions)
    subresources = version.get("subresources") if own else internal.common("subresources")
    has_status = (subresources or {}).get("status") is not None
    if (schema := _schema_of(version.get("schema"))) is not None:
        at = path.child("schema", "openAPIV3Schema")
        errors += validate_schema(schema, at, decode, kubernetes, has_status=has_status)
    errors += _subresource_errors(version.get("subresources"), path.child("subresources"))
    errors += _columns_errors(version.get("additionalPrinterColumns"), path.child("additionalPrinterColumns"))
    if fields := version.get("selectableFields"):
        at = path.child("selectableFields")
        if schema is None:
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            errors.append(invalid(at, "", detail))
        else:
            errors += selectable_field_errors(fields, schema, at)
    return errors


def _deprecation_errors(version: Mapping[str, Any], path: Path) -> ErrorList:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    json_warning = json_text(warning)
    if not version.get("deprecated"):
        return [invalid(path, json_warning, "can only be set for deprecated versions")]
    errors: ErrorList = []
    if len(warning.encode()) > _MAX_WARNING_BYTES:
        errors.append(invalid(path, json_warning, "must be <= 256 characters long"))
    if not warning:
        errors.append(invalid(path, json_warning, "must not be an empty string"))
    at = 0
    for character in warning:
        if not (character == " " or unicodedata.category(character)[0] in "LMNPS"):
            detail = "must only contain printable UTF-8 characters; non-printable character found at index"
            errors.append(invalid(path, json_warning, f"{detail} {at}"))
            break
        at += len(character.encode())
    return errors


def _versions_errors(internal: _Internal) -> ErrorList:
    """The errors in the list of versions as a whole."""
    path, versions = _SPEC.child("versions"), internal.versions
    errors: ErrorList = []
    version_names = [version.get("name", "") for version in versions]
    if len(set(version_names)) < len(version_names):
        errors.append(invalid(path, _go_versions(versions), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid(path, None if internal.is_nil else _go_versions(versions), detail))
    return errors


def _shared_errors(internal: _Internal, decode: DecodeMetadata, kubernetes: str) -> ErrorList:
    """The errors in the fields that all versions share."""
    errors: ErrorList = []
    schema = _schema_of(internal.common("schema"))
    subresources = [internal.common("subresources"), *(version.get("subresources") for version in internal.versions)]
    has_status = any((item or {}).get("status") is not None for item in subresources)
    if schema is not None:
        at = _SPEC.child("validation", "openAPIV3Schema")
        errors += validate_schema(schema, at, decode, kubernetes, has_status=has_status)
    errors += _subresource_errors(internal.common("subresources"), _SPEC.child("subresources"))
    errors += _columns_errors(internal.common("additionalPrinterColumns"), _SPEC.child("additionalPrinterColumns"))
    if fields := internal.common("selectableFields"):
        at = _SPEC.child("selectableFields")
        if internal.common("schema") is None:
            errors.append(invalid(at, "", "may only be set when validations.schema is included"))
        elif schema is not None:
            errors += selectable_field_errors(fields, schema, at)
    return errors


def _names_errors(wanted: Mapping[str, Any], path: Path) -> ErrorList:
    errors: ErrorList = []
    for key, mixed in (("plural", False), ("singular", False), ("kind", True), ("listKind", True)):
        value = wanted.get(key) or ""
        if value and (complaints := names.is_dns1035_label(value.lower() if mixed else value)):
            begin = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.append(invalid(path.child(key), value, begin + ",".join(complaints)))
    errors += _labels_errors(wanted.get("shortNames"), path.child("shortNames"))
    if wanted.get("kind") and wanted["kind"] == wanted.get("listKind"):
        errors.append(invalid(path.child("listKind"), wanted["kind"], "kind and listKind may not be the same"))
    return errors + _labels_errors(wanted.get("categories"), path.child("categories"))


def _labels_errors(values: Sequence[str] | None, path: Path) -> ErrorList:
    return [
        invalid(path.index(i), value, ",".join(complaints))
        for i, value in enumerate(values or ())
        if (complaints := names.is_dns1035_label(value))
    ]


def _columns_errors(columns: Sequence[Mapping[str, Any]] | None, path: Path) -> ErrorList:
    errors: ErrorList = []
    types, formats = f"must be one of {','.join(_COLUMN_TYPES)}", f"must be one of {','.join(_COLUMN_FORMATS)}"
    for i, column in enumerate(columns or ()):
        at = path.index(i)
        if not column.get("name"):
            errors.append(required(at.child("name")))
        if not column.get("type"):
            errors.append(required(at.child("type"), types))
        elif column["type"] not in _COLUMN_TYPES:
            errors.append(invalid(at.child("type"), column["type"], types))
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            errors.append(invalid(at.child("format"), column["format"], formats))
        if not column.get("jsonPath"):
            errors.append(required(at.child("JSONPath")))
        else:
            errors += _simple_path_errors(column["jsonPath"], at.child("JSONPath"))
    return errors


def _simple_path_errors(text: str, path: Path) -> ErrorList:
    return [] if text.startswith(".") else [invalid(path, text, "must be a simple json path starting with .")]


def _subresource_errors(subresources: Mapping[str, Any] | None, path: Path) -> ErrorList:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    errors: ErrorList = []
    for key, below in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        at, text = path.child(f"scale.{key}"), scale.get(key, "")
        if not text:
            errors.append(required(at))
        elif path_errors := _simple_path_errors(text, at):
            errors += path_errors
        elif not text.startswith(f"{below}."):
            errors.append(invalid(at, text, f"should be a json path under {below}"))
    at, text = path.child("scale.labelSelectorPath"), scale.get("labelSelectorPath") or ""
    if text and (path_errors := _simple_path_errors(text, at)):
        errors += path_errors
    elif text and not text.startswith((".spec.", ".status.")):
        errors.append(invalid(at, json_text(text), "should be a json path under either .spec or .status"))
    return errors


def _go_versions(versions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """[]CustomResourceDefinitionVersion as Go prints it."""
    return [
        {
            "Name": version.get("name", ""),
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": go_validation(version.get("schema")),
            "Subresources": _go_subresources(version.get("subresources")),
            "AdditionalPrinterColumns": _go_columns(version.get("additionalPrinterColumns")),
            "SelectableFields": [{"JSONPath": field.get("jsonPath", "")} for field in version["selectableFields"]]
            if version.get("selectableFields")
            else None,
        }
        for version in versions
    ]


def _go_subresources(subresources: Mapping[str, Any] | None) -> Any:
    if subresources is None:
        return None
    scale = subresources.get("scale")
    go_scale = None
    if scale is not None:
        go_scale = {
            "SpecReplicasPath": scale.get("specReplicasPath", ""),
            "StatusReplicasPath": scale.get("statusReplicasPath", ""),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        }
    return {"Status": None if subresources.get("status") is None else {}, "Scale": go_scale}


def _go_columns(columns: Sequence[Mapping[str, Any]] | None) -> Any:
    if not columns:
        return None
    keys = {"Name": "name", "Type": "type", "Format": "format", "Description": "description"}
    return [
        {
            **{name: column.get(key, "") for name, key in keys.items()},
            "Priority": column.get("priority", 0),
            "JSONPath": column.get("jsonPath", ""),
        }
        for column in columns
    ]


# --------------------------------------------------------- status and approval


def _stored_version_errors(obj: Object) -> ErrorList:
    path = _STATUS.child("storedVersions")
    stored = (obj.get("status") or {}).get("storedVersions") or None
    if not stored:
        return [invalid(path, stored, "must have at least one stored version")]
    errors: ErrorList = []
    seen = set()
    for version in obj["spec"].get("versions") or ():
        # A version that is there twice is stored as the first of them.
        if version.get("storage") and (version.get("name") not in stored or version.get("name") in seen):
            errors.append(invalid(path, stored, f"must have the storage version {version.get('name')}"))
        seen.add(version.get("name"))
    for i, name in enumerate(stored):
        if name not in seen:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            errors.append(invalid(path.index(i), name, detail))
    return errors


def _approval_errors(obj: Object, old: Object | None) -> ErrorList:
    if not is_protected(obj["spec"].get("group", "")):
        return []
    state, reason = approval(obj)
    if old is not None and approval(old)[0] == state:
        return []
    path = Path("metadata").child("annotations").key(APPROVAL)
    if state == "Missing":
        return [required(path, reason)]
    if state == "Invalid":
        return [invalid(path, metadata(obj)["annotations"][APPROVAL], reason)]
    return []
