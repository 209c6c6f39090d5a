"""Functions of dictionaries."""

from collections.abc import Callable, Mapping
from typing import Any

from fakeapiserver.languages.gotemplate.sprig.defaults import empty
from fakeapiserver.languages.gotemplate.values import TemplateError, shown, type_name


def new_dict(*values: Any) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for at in range(0, len(values), 2):
        entries[shown(values[at])] = values[at + 1] if at + 1 < len(values) else ""
    return entries


def get(value: dict[str, Any], key: str) -> Any:
    return value.get(key, "")


def set_key(value: dict[str, Any], key: str, item: Any) -> dict[str, Any]:
    value[key] = item
    return value


def unset_key(value: dict[str, Any], key: str) -> dict[str, Any]:
    value.pop(key, None)
    return value


def has_key(value: dict[str, Any], key: str) -> bool:
    return key in value


def pluck(key: str, *values: dict[str, Any]) -> list[Any]:
    return [value[key] for value in values if key in value]


def keys(*values: dict[str, Any]) -> list[Any]:
    return [key for value in values for key in sorted(value)]


def values(value: dict[str, Any]) -> list[Any]:
    return [value[key] for key in sorted(value)]


def pick(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def omit(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def _merge_into(target: dict[str, Any], source: Mapping[str, Any], *, overwrite: bool) -> None:
    for key, item in source.items():
        before = target.get(key)
        if isinstance(before, dict) and isinstance(item, dict):
            _merge_into(before, item, overwrite=overwrite)
        elif empty(before) or (overwrite and not empty(item)):
            target[key] = item


def merging(*, overwrite: bool) -> Callable[..., Any]:
    def run(target: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
        for source in sources:
            _merge_into(target, source, overwrite=overwrite)
        return target

    return run


def deep_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: deep_copy(item) for key, item in value.items()}
    return [*map(deep_copy, value)] if isinstance(value, list) else value


def dig(*path: Any) -> Any:
    if len(path) < 3:
        raise TemplateError("dig needs at least three arguments")
    *keys, default, value = path
    for key in keys:
        if not isinstance(value, dict):
            raise TemplateError(
                f"interface conversion: interface {{}} is {type_name(value)}, not map[string]interface {{}}"
            )
        if key not in value:
            return default
        value = value[key]
    return value
