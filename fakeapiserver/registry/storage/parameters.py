"""The rules for both storage classes and volume attributes classes: the provisioner and its parameters.

Upstream: pkg/apis/storage/validation/validation.go (validateProvisioner, validateParameters).
"""

from collections.abc import Mapping
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.registry.core.field_formats import name_errors

_MAX_PARAMETERS: Final = 512
_MAX_BYTES: Final = 256 * 1024


def provisioner_errors(name: str, path: Path) -> ErrorList:
    return name_errors(name.lower(), names.is_qualified_name, path) if name else [field.required(path)]


def parameter_errors(parameters: Mapping[str, str], path: Path) -> ErrorList:
    if len(parameters) > _MAX_PARAMETERS:
        return [field.too_long(path, _MAX_PARAMETERS)]
    errors = [field.invalid(path, "", "field can not be empty.")] if "" in parameters else []
    return errors + size_errors(parameters, path)


def size_errors(texts: Mapping[str, str], path: Path) -> ErrorList:
    """The error for parameters whose keys and values together are larger than 256 KiB."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in texts.items())
    return [field.too_long(path, _MAX_BYTES)] if size > _MAX_BYTES else []
