"""Rules for names, keys and values, and the validation of an object's metadata.

Upstream: k8s.io/apimachinery/pkg/api/validate/content, pkg/util/validation/validation.go, pkg/api/validation/objectmeta.go.
The `is_*` functions return the complaints about a value: an empty list means that it is valid.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object

NameFunction = Callable[[str, bool], list[str]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_ENDS: Final = "and must start and end with an alphanumeric character"
_LABEL_RULE: Final = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
_WILDCARD_RULE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
    "alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
)
_DNS1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_KEY_RULE: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_VALUE_RULE: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
)
_MATCH: Final = {
    pattern: re.compile(pattern, re.ASCII).fullmatch
    for pattern in (_LABEL, _SUBDOMAIN, _DNS1035, _KEY, _VALUE, _HTTP_PATH)
}
_MAX_LABEL: Final = 63
# Characters of a long text.
_LONG: Final = 64 * 1024
_MAX_SUBDOMAIN: Final = 253
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
_MAX_FIELD_MANAGER: Final = 128
_MAX_SUBRESOURCE: Final = 256


def max_length_error(limit: int, unit: str = "bytes") -> str:
    """Upstream always counts bytes, but says "characters" for whole DNS names."""
    text = f"must be no more than {limit} {unit}"
    return Message(text, "max-bytes", limit) if unit == "bytes" else text


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """A rule, examples and the pattern in one sentence, put together the way upstream's RegexError does it."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _is_subdomain(value: str) -> bool:
    """Reports whether a text is a subdomain, whatever its length. A long one is matched label by label, so that threads take turns."""
    if len(value) < _LONG:
        return _MATCH[_SUBDOMAIN](value) is not None
    return all(_MATCH[_LABEL](label) for label in value.split("."))


def is_dns1123_label(value: str, unit: str = "characters") -> list[str]:
    errors = [max_length_error(_MAX_LABEL, unit)] if len(value.encode()) > _MAX_LABEL else []
    if not _MATCH[_LABEL](value):
        dotted = _is_subdomain(value)
        errors.append("must not contain dots" if dotted else regex_error(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return errors


def is_dns1123_subdomain(value: str, unit: str = "characters") -> list[str]:
    errors = [max_length_error(_MAX_SUBDOMAIN, unit)] if len(value.encode()) > _MAX_SUBDOMAIN else []
    if not _is_subdomain(value):
        errors.append(regex_error(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return errors


def is_wildcard_dns1123_subdomain(value: str) -> list[str]:
    """A subdomain whose first label is `*`."""
    errors = [max_length_error(_MAX_SUBDOMAIN, "characters")] if len(value.encode()) > _MAX_SUBDOMAIN else []
    if not (value.startswith("*.") and _is_subdomain(value[2:])):
        errors.append(regex_error(_WILDCARD_RULE, rf"\*\.{_SUBDOMAIN}", "*.example.com"))
    return errors


def is_dns1035_label(value: str) -> list[str]:
    errors = [max_length_error(_MAX_LABEL, "characters")] if len(value.encode()) > _MAX_LABEL else []
    if not _MATCH[_DNS1035](value):
        errors.append(regex_error(_DNS1035_RULE, _DNS1035, "my-name", "abc-123"))
    return errors


@lru_cache(maxsize=4096)
def _qualified_name(value: str) -> tuple[str, ...]:
    prefix, slash, name = value.rpartition("/")
    rule = regex_error(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (Message("a valid label key", "qualified-name") + f" {rule} {example}",)
    errors: list[str] = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += ["prefix part " + problem for problem in is_dns1123_subdomain(prefix, "bytes")]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > _MAX_LABEL:
        errors.append("name part " + max_length_error(_MAX_LABEL))
    if not _MATCH[_KEY](name):
        errors.append(f"name part {rule}")
    return tuple(errors)


def is_qualified_name(value: str) -> list[str]:
    """A label's key, an annotation's key, a finalizer: `name` or `prefix/name`."""
    return list(_qualified_name(value))


@lru_cache(maxsize=4096)
def _label_value(value: str) -> tuple[str, ...]:
    errors = [max_length_error(_MAX_LABEL)] if len(value.encode()) > _MAX_LABEL else []
    if not _MATCH[_VALUE](value):
        errors.append(regex_error(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


def is_valid_label_value(value: str) -> list[str]:
    return list(_label_value(value))


def validate_domain_prefixed_path(value: str, path: Path) -> ErrorList:
    """`acme.io/project` (upstream: IsDomainPrefixedPath)."""
    host, _, rest = value.partition("/")
    if not value:
        return [field.required(path)]
    if not host or not rest:
        return [field.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [field.invalid(path, host, problem) for problem in is_dns1123_subdomain(host)]
    if not _MATCH[_HTTP_PATH](rest):
        errors.append(field.invalid(path, rest, regex_error("Invalid path", _HTTP_PATH)))
    return errors


def path_segment_name(name: str, prefix: bool = False) -> list[str]:
    """Anything that fits into one segment of a path (upstream: pkg/api/validation/path/name.go)."""
    errors = [] if prefix else [f"may not be '{name}'" for _ in (0,) if name in (".", "..")]
    return errors + [f"may not contain '{character}'" for character in "/%" if character in name]


def _masked(name: str, prefix: bool) -> str:
    """A generateName may end with a dash, since a suffix follows: the name to validate, made as upstream makes it (maskTrailingDash)."""
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def any_name(name: str, prefix: bool = False) -> list[str]:
    """For kinds without a rule for names besides the one for all kinds."""
    return []


def name_is_dns_subdomain(name: str, prefix: bool) -> list[str]:
    return is_dns1123_subdomain(_masked(name, prefix))


def name_is_long(name: str, prefix: bool) -> list[str]:
    """Returns what name_is_dns_subdomain does, in the words of newer code
    (k8s.io/apimachinery/pkg/api/validate/strfmt.go).
    """
    return [
        text.replace("characters", "bytes") if "no more than" in text else text for text in is_dns1123_subdomain(name)
    ]


def name_is_dns_label(name: str, prefix: bool) -> list[str]:
    return is_dns1123_label(_masked(name, prefix))


def name_is_dns1035_label(name: str, prefix: bool) -> list[str]:
    return is_dns1035_label(_masked(name, prefix))


# ------------------------------------------------------------------ metadata


def validate_names(meta: Object, name_fn: NameFunction, path: Path) -> ErrorList:
    """The errors in the name and the generateName of an object, the part of `validate_object_meta` that depends on `name_fn`."""
    errors: ErrorList = []
    if generate := meta.get("generateName"):
        errors += [field.invalid(path.child("generateName"), generate, text) for text in name_fn(generate, True)]
    if not (name := meta.get("name")):
        errors.append(field.required(path.child("name"), "name or generateName is required"))
    else:
        errors += [field.invalid(path.child("name"), name, text) for text in name_fn(name, False)]
    return errors


def validate_object_meta(meta: Object, requires_namespace: bool, name_fn: NameFunction, path: Path) -> ErrorList:
    """The errors in a new object's metadata, whose name is generated already (ValidateObjectMeta)."""
    errors = validate_names(meta, name_fn, path)
    namespace = meta.get("namespace", "")
    if not requires_namespace and namespace:
        errors.append(field.forbidden(path.child("namespace"), "not allowed on this type"))
    elif requires_namespace and not namespace:
        errors.append(field.required(path.child("namespace")))
    elif requires_namespace:
        errors += [field.invalid(path.child("namespace"), namespace, text) for text in is_dns1123_label(namespace)]
    if meta.get("generation", 0) < 0:
        errors.append(field.invalid(path.child("generation"), meta["generation"], "must be greater than or equal to 0"))
    errors += _labels_annotations_owners(meta, path)
    if meta.get("finalizers"):
        errors += _finalizer_errors(meta["finalizers"], path.child("finalizers"))
    return errors + _managed_fields_errors(meta.get("managedFields") or (), path.child("managedFields"))


_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_object_meta_update(new: Object, old: Object, path: Path) -> ErrorList:
    """The errors in changed metadata (ValidateObjectMetaUpdate). The store checks for a missing resourceVersion."""
    errors: ErrorList = []
    if "deletionTimestamp" in old:
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            shown = "[]string{" + ", ".join(map(go_quote, extra)) + "}"
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
            errors.append(field.forbidden(path.child("finalizers"), detail))
    for name in _IMMUTABLE:
        if new.get(name) != old.get(name):
            errors.append(field.invalid(path.child(name), new.get(name, ""), "field is immutable"))
    errors += _labels_annotations_owners(new, path)
    return errors + _managed_fields_errors(new.get("managedFields") or (), path.child("managedFields"))


_STANDARD_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


def validate_kube_finalizers(meta: Object, path: Path) -> ErrorList:
    """Built-in kinds require qualified finalizers (upstream: validateKubeFinalizerName in pkg/apis/core/validation)."""
    errors: ErrorList = []
    for i, name in enumerate(meta.get("finalizers") or ()):
        errors += _kube_finalizer_errors(name, path.child("finalizers").index(i))
    return errors


def finalizer_name_errors(name: str, path: Path) -> ErrorList:
    """The errors in the name of a finalizer in a namespace's spec."""
    return [field.invalid(path, name, text) for text in _qualified_name(name)] + _kube_finalizer_errors(name, path)


def _kube_finalizer_errors(name: str, path: Path) -> ErrorList:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [field.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def validate_labels(labels: Mapping[str, str], path: Path) -> ErrorList:
    errors: ErrorList = []
    for key, value in labels.items():
        errors += [field.invalid(path, key, text) for text in _qualified_name(key)]
        errors += [field.invalid(path, value, text) for text in _label_value(value)]
    return errors


def validate_annotations(annotations: Mapping[str, str], path: Path) -> ErrorList:
    errors = [field.invalid(path, key, text) for key in annotations for text in _qualified_name(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        errors.append(field.too_long(path, MAX_ANNOTATIONS_BYTES))
    return errors


def _labels_annotations_owners(meta: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, path.child("labels"))
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, path.child("annotations"))
    if owners := meta.get("ownerReferences"):
        errors += validate_owner_references(owners, path.child("ownerReferences"))
    return errors


NO_OWNER_VERSION: Final = "must be <group>/<version> or <version>"


def validate_owner_references(owners: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    controller = ""
    for i, owner in enumerate(owners):
        errors += _owner_errors(owner, path.index(i))
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {name}"
                )
                errors.append(field.invalid(path, [_in_go_order(each) for each in owners], detail))
            else:
                controller = name
    return errors


def _in_go_order(owner: Object) -> Object:
    """Returns the reference with its keys in the order in which Go prints the struct."""
    named = {name: owner.get(name, "") for name in ("apiVersion", "kind", "name", "uid")}
    return named | {name: owner[name] for name in ("controller", "blockOwnerDeletion") if name in owner}


def _owner_errors(owner: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    api_version = owner.get("apiVersion", "")
    try:
        group_version = GroupVersion.parse(api_version)
    except ValueError:
        group_version = GroupVersion("", "")
    if not api_version:
        errors.append(field.required(path.child("apiVersion"), "must not be empty"))
    elif not group_version.version:
        errors.append(field.invalid(path.child("apiVersion"), api_version, NO_OWNER_VERSION))
    errors += [
        field.required(path.child(name), "must not be empty") for name in ("kind", "name", "uid") if not owner.get(name)
    ]
    if group_version == ("", "v1") and owner.get("kind") == "Event":
        errors.append(field.invalid(path, _in_go_order(owner), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _finalizer_errors(finalizers: Sequence[str], path: Path) -> ErrorList:
    errors = [field.invalid(path, name, text) for name in finalizers for text in _qualified_name(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(field.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


def _managed_fields_errors(entries: Sequence[Mapping[str, Any]], path: Path) -> ErrorList:
    errors: ErrorList = []
    for i, entry in enumerate(entries):
        at = path.index(i)
        operation, kind, manager = entry.get("operation", ""), entry.get("fieldsType", ""), entry.get("manager", "")
        if operation not in ("Apply", "Update"):
            errors.append(field.invalid(at.child("operation"), operation, "must be `Apply` or `Update`"))
        if kind and kind != "FieldsV1":
            errors.append(field.invalid(at.child("fieldsType"), kind, "must be `FieldsV1`"))
        if len(manager.encode()) > _MAX_FIELD_MANAGER:
            errors.append(field.too_long(at.child("manager"), _MAX_FIELD_MANAGER))
        if len(entry.get("subresource", "").encode()) > _MAX_SUBRESOURCE:
            errors.append(field.too_long(at.child("subresource"), _MAX_SUBRESOURCE))
    return errors
