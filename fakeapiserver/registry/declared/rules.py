"""Rules that upstream generates from its types' comments: names, limits, unions, fields that can't change.

Upstream: k8s.io/apimachinery/pkg/api/validate; which field has which is in pkg/apis/<group>/<version>/zz_generated.validations.go.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.generic.label_selector import IMMUTABLE

Check = Callable[[str], list[str]]
Errors = Callable[[Object, Path], ErrorList]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_IS_CASELESS: Final = re.compile(_SUBDOMAIN, re.IGNORECASE | re.ASCII)
_CASELESS_RULE: Final = names.regex_error(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character",
    _SUBDOMAIN,
    "Example.com",
)
_MAX_LONG: Final = 253
_MAX_DOMAIN: Final = 63
MAX_IDENTIFIER: Final = 32
_NO_DOMAIN: Final = "a fully qualified name must be a domain and a name separated by a slash"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_IS_C_IDENTIFIER: Final = re.compile(_C_IDENTIFIER)
_C_IDENTIFIER_RULE: Final = names.regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
    _C_IDENTIFIER,
    *("my_name", "MY_NAME", "MyName"),
)
_RESERVED: Final = (".k8s.io", ".kubernetes.io")
_IS_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Reported once for each item.
ITEM_REMOVED: Final = "item may not be removed"
# Shown in place of the value, whatever it was.
NOTHING: Final = msgspec.Raw(b"null")


def short_name(value: str) -> list[str]:
    return names.is_dns1123_label(value, "bytes")


def long_name(value: str) -> list[str]:
    return names.is_dns1123_subdomain(value, "bytes")


def long_name_caseless(value: str) -> list[str]:
    errors = [names.max_length_error(_MAX_LONG)] if len(value.encode()) > _MAX_LONG else []
    return errors if _IS_CASELESS.fullmatch(value) else [*errors, _CASELESS_RULE]


def prefixed_label_key(value: str) -> list[str]:
    if problems := names.is_qualified_name(value):
        return problems
    return [] if "/" in value else ["must include a prefix (e.g. 'example.com/key')"]


def not_reserved(value: str) -> list[str]:
    """Returns a problem if a key's prefix is in a domain of Kubernetes itself."""
    domain = value.partition("/")[0].lower().strip().rstrip(".")
    is_reserved = any(f".{domain}".endswith(suffix) for suffix in _RESERVED)
    return [f"domain names {', '.join(f'*{suffix}' for suffix in _RESERVED)} are reserved"] if is_reserved else []


def lowercase_uuid(value: str) -> list[str]:
    return [] if _IS_UUID.fullmatch(value) else ["must be a lowercase UUID in 8-4-4-4-12 format"]


def extended_resource_name(value: str) -> list[str]:
    """Returns the problems of an extended resource's name."""
    problems = []
    if "/" not in value:
        problems.append("a name must be a domain-prefixed path, such as 'example.com/my-prop'")
    elif "kubernetes.io/" in value:
        problems.append('must not have "kubernetes.io/" domain')
    if value.startswith("requests."):
        problems.append('must not have "requests." prefix')
    return problems + names.is_qualified_name(f"requests.{value}")


def pool_name_errors(name: str, path: Path) -> ErrorList:
    """The errors in the name of a pool of devices: long names between slashes."""
    errors = [field.too_long(path, _MAX_LONG)] if len(name.encode()) > _MAX_LONG else []
    for i, part in enumerate(name.split("/")):
        problems = long_name(part) if part else ["must not be empty"]
        errors += [field.invalid(path, part or name, f"segment {i}: {problem}") for problem in problems]
    return errors


def qualified_name_errors(name: str, path: Path) -> ErrorList:
    """The errors in a device attribute's name with its domain; names with two slashes are not looked at."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return [*identifier_errors(name, path), field.invalid(path, name, _NO_DOMAIN)]
    if "/" in identifier:
        return []
    errors = [] if domain else [field.invalid(path, "", "prefix must not be empty")]
    if domain:
        errors += [field.too_long(path, _MAX_DOMAIN)] if len(domain.encode()) > _MAX_DOMAIN else []
        errors += [field.invalid(path, domain, f"prefix: {problem}") for problem in long_name(domain)]
    if not identifier:
        return [*errors, field.invalid(path, "", "name must not be empty")]
    return errors + identifier_errors(identifier, path)


def identifier_errors(identifier: str, path: Path) -> ErrorList:
    errors = [field.too_long(path, MAX_IDENTIFIER)] if len(identifier.encode()) > MAX_IDENTIFIER else []
    if _IS_C_IDENTIFIER.fullmatch(identifier):
        return errors
    return [*errors, field.invalid(path, identifier, _C_IDENTIFIER_RULE)]


def required_text_errors(obj: Object, name: str, check: Check, path: Path) -> ErrorList:
    """The errors in a required text."""
    return optional_text_errors(obj, name, check, path) if obj.get(name) else [field.required(path.child(name))]


def optional_text_errors(obj: Object, name: str, check: Check, path: Path) -> ErrorList:
    value = obj.get(name)
    return [] if value is None else [field.invalid(path.child(name), value, text) for text in check(value)]


def minimum_errors(value: int, least: int, path: Path) -> ErrorList:
    return [field.invalid(path, value, f"must be greater than or equal to {least}")] if value < least else []


def maximum_errors(value: int, most: int, path: Path) -> ErrorList:
    return [field.invalid(path, value, f"must be less than or equal to {most}")] if value > most else []


def union_errors(obj: Object, members: Sequence[str], path: Path) -> ErrorList:
    """The errors for a union, of which exactly one field must be set."""
    given = [name for name in members if obj.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in members)
    if not given:
        return [field.invalid(path, "", f"must specify one of: {listed}")]
    if len(given) > 1:
        return [field.invalid(path, "{" + ", ".join(given) + "}", f"must specify exactly one of: {listed}")]
    return []


def list_errors(items: Sequence[Object], most: int, check: Errors, path: Path) -> ErrorList:
    """The errors of each item; if there are too many items, only that."""
    if len(items) > most:
        return [field.too_many(path, len(items), most)]
    return [error for i, item in enumerate(items) for error in check(item, path.index(i))]


def map_list_errors(
    items: Sequence[Object], most: int, check: Errors, path: Path, show: Callable[[Object], Any]
) -> ErrorList:
    """The errors of `list_errors`, and those for repeated keys of items; `show` makes the value that the error for a duplicate shows."""
    if len(items) > most:
        return [field.too_many(path, len(items), most)]
    named = [item.get("name", "") for item in items]
    twice = sorted(field.repetitions(named))
    errors = [field.duplicate(path.index(i), show(items[i])) for i in twice]
    return errors + list_errors(items, most, check, path)


def unchanged_errors(obj: Object, old: Object, fields: Sequence[str], path: Path) -> ErrorList:
    """The errors for changed fields that can't change; upstream doesn't show their values. Empty equals absent, but zero doesn't."""
    changed = (name for name in fields if _given(obj.get(name)) != _given(old.get(name)))
    return [field.invalid(path.child(name), NOTHING, IMMUTABLE) for name in changed]


def _given(value: object) -> object:
    return None if value in ("", []) else value
