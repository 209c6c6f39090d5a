"""What a CustomResourceDefinition must look like.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go. Covered are names, versions and
structural schemas.
"""

from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import choice_errors

_SPEC: Final = Path("spec")
_NAMES: Final = ("plural", "singular", "kind", "listKind")
_ONE_STORED: Final = "must have exactly one version marked as storage version"
_ONCE_SERVED: Final[tuple[tuple[str, ...], ...]] = (("scope",), ("names", "kind"))
_FROM_THE_START: Final[tuple[tuple[str, ...], ...]] = (("group",), ("names", "plural"))
_GONE: Final = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a storage "
    "migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)


def spec_errors(spec: Object) -> ErrorList:
    errors = _group_errors(spec.get("group", ""))
    errors += choice_errors(spec.get("scope", ""), ("Cluster", "Namespaced"), _SPEC.child("scope"))
    errors += _version_errors(spec.get("versions"))
    errors += [field.required(_SPEC.child("names", name)) for name in _NAMES if not spec["names"].get(name)]
    return errors + names_errors(spec["names"], _SPEC.child("names"))


def change_errors(spec: Object, old: Object, established: bool) -> ErrorList:
    """What names a resource can't change, nor what it is stored under once it is served."""
    fixed = (_ONCE_SERVED if established else ()) + _FROM_THE_START
    return [
        field.invalid(_SPEC.child(*path), _value(spec, path), "field is immutable")
        for path in fixed
        if _value(spec, path) != _value(old, path)
    ]


def names_errors(found: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for name in _NAMES:
        text = found.get(name, "")
        mixed = name.lower().endswith("kind")
        problems = names.is_dns1035_label(text.lower() if mixed else text) if text else []
        if problems:
            detail = ",".join(problems)
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.append(field.invalid(path.child(name), text, prefix + detail))
    errors += _label_errors(found.get("shortNames"), path.child("shortNames"))
    if found.get("kind") and found["kind"] == found.get("listKind"):
        errors.append(field.invalid(path.child("listKind"), found["kind"], "kind and listKind may not be the same"))
    return errors + _label_errors(found.get("categories"), path.child("categories"))


def stored_version_errors(stored: list[str] | None, versions: list[Object] | None) -> ErrorList:
    path = Path("status").child("storedVersions")
    if not stored:
        return [field.invalid(path, stored, "must have at least one stored version")]
    errors: ErrorList = []
    served = {version.get("name", ""): version.get("storage", False) for version in versions or ()}
    for name, storage in served.items():
        if storage and name not in stored:
            errors.append(field.invalid(path, stored, f"must have the storage version {name}"))
    gone = [(i, name) for i, name in enumerate(stored) if name not in served]
    return errors + [field.invalid(path.index(i), name, _GONE.format(name)) for i, name in gone]


def _value(spec: Object, path: tuple[str, ...]) -> Any:
    found: Any = spec
    for name in path:
        found = found.get(name, "")
    return found


def _group_errors(group: str) -> ErrorList:
    path = _SPEC.child("group")
    if not group:
        return [field.required(path)]
    if problems := names.is_dns1123_subdomain(group):
        return [field.invalid(path, group, ",".join(problems))]
    return [] if "." in group else [field.invalid(path, group, "should be a domain with at least one dot")]


def _label_errors(found: list[str] | None, path: Path) -> ErrorList:
    errors: ErrorList = []
    for i, text in enumerate(found or ()):
        if problems := names.is_dns1035_label(text):
            errors.append(field.invalid(path.index(i), text, ",".join(problems)))
    return errors


def _version_errors(versions: list[Object] | None) -> ErrorList:
    from fakeapiserver.apimachinery.schema.structural_rules import validate_schema

    path = _SPEC.child("versions")
    errors: ErrorList = []
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions or ()]
    at = [path.index(i).child("schema", "openAPIV3Schema") for i in range(len(schemas))]
    errors += [field.required(at[i], "schemas are required") for i, schema in enumerate(schemas) if schema is None]
    seen: set[str] = set()
    for i, (version, schema) in enumerate(zip(versions or (), schemas, strict=True)):
        name = version.get("name", "")
        if problems := names.is_dns1035_label(name):
            errors.append(field.invalid(path.index(i).child("name"), name, ",".join(problems)))
        if schema is not None:
            errors += validate_schema(schema, at[i])
        seen.add(name)
    if len(seen) != len(schemas):
        errors.append(field.invalid(path, versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions or ()) != 1:
        errors.append(field.invalid(path, versions, _ONE_STORED))
    return errors
