"""The rules that config maps and secrets share: their keys, their size, and `immutable`.

Upstream: pkg/apis/core/validation/validation.go, k8s.io/apimachinery/pkg/util/validation/validation.go (IsConfigMapKey).
"""

import re
from collections.abc import Iterable
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.names import max_length_error, regex_error

# Of all values of one object together, in bytes (MaxSecretSize).
MAX_SIZE: Final = 1024 * 1024
_MAX_KEY: Final = 253
_KEY_PATTERN: Final = "[-._a-zA-Z0-9]+"
_KEY: Final = re.compile(_KEY_PATTERN)
_KEY_RULE: Final = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_FROZEN: Final = "field is immutable when `immutable` is set"


def is_config_map_key(key: str) -> list[str]:
    """The problems of a key; an empty list for a valid one."""
    errors = [max_length_error(_MAX_KEY, "characters")] if len(key.encode()) > _MAX_KEY else []
    if not _KEY.fullmatch(key):
        errors.append(regex_error(_KEY_RULE, _KEY_PATTERN, "key.name", "KEY_NAME", "key-name"))
    if key == ".":
        errors.append("must not be '.'")
    elif key == "..":
        errors.append("must not be '..'")
    elif key.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def key_errors(keys: Iterable[str], path: Path) -> ErrorList:
    return [field.invalid(path.key(key), key, problem) for key in sorted(keys) for problem in is_config_map_key(key)]


def immutable_errors(obj: Object, old: Object, names: Iterable[str]) -> ErrorList:
    """The errors in an update of an immutable object: it changes these fields, or is mutable again. An empty map differs from an absent one
    (upstream: reflect.DeepEqual)."""
    if not old.get("immutable"):
        return []
    errors = [] if obj.get("immutable") else [field.forbidden("immutable", _FROZEN)]
    return errors + [field.forbidden(name, _FROZEN) for name in names if obj.get(name) != old.get(name)]
