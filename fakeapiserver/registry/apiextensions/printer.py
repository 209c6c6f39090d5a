"""A custom resource's Table: its name, and the columns its CustomResourceDefinition adds.

Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.registry.generic.printing import duration_since

_AGE: Final = {"type": "date", "jsonPath": ".metadata.creationTimestamp"}
_STEP: Final = re.compile(r"""\.([\w/-]+(?:\\.[\w/-]+)*)|\[(?:'([^']*)'|"([^"]*)"|(-?\d+)|(\*)|\?\(([^)]*)\))\]""")
_FILTER: Final = re.compile(r"""@\.([\w.]+)\s*==\s*(?:'([^']*)'|"([^"]*)"|(\w+))""")


def row_printer(declared: Sequence[Mapping[str, Any]]) -> Callable[[Object, float], list[object]]:
    """Prints the cells of the declared columns behind the name; without any there is an age, as upstream has it."""
    readers = [(column["type"], compile_path(column["jsonPath"])) for column in list(declared) or [_AGE]]

    def row(obj: Object, now: float) -> list[object]:
        return [metadata(obj).get("name", ""), *(_cell(kind, read(obj), now) for kind, read in readers)]

    return row


def _cell(kind: str, found: list[Any], now: float) -> object:
    """The value as its column's type; null where there is none or it is of another type."""
    if not found:
        return None
    value = found[0] if len(found) == 1 else None
    if kind == "string":
        return ",".join(map(_text, found)) if len(found) > 1 else _text(found[0])
    if kind == "date":
        seconds = seconds_of(value) if isinstance(value, str) else None
        return "<invalid>" if seconds is None else duration_since(seconds, now)
    expected: dict[str, tuple[type, ...]] = {"integer": (int, float), "number": (int, float), "boolean": (bool,)}
    fits = isinstance(value, expected.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))
    if not fits:
        return None
    return int(value) if kind == "integer" and isinstance(value, (int, float)) else value


def _text(value: Any) -> str:
    """As Go prints a JSON value without a format."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        from fakeapiserver.apimachinery.serializer import json

        return json.encode(value).decode()
    return str(value)


def compile_path(path: str) -> Callable[[Object], list[Any]]:
    """The JSON path of a column (`.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`) as a function."""
    steps = list(_steps(path))

    def read(obj: Object) -> list[Any]:
        values: list[Any] = [obj]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return [value for value in values if value is not None]

    return read


def _steps(path: str) -> Iterator[Callable[[Any], list[Any]]]:
    text = path if path.startswith((".", "[")) else "." + path
    for name, single, double, index, star, condition in _STEP.findall(text):
        if condition:
            yield _filter(condition)
        elif star:
            yield (
                lambda value: (
                    list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
                )
            )
        elif index:
            yield _item(int(index))
        else:
            yield _member((name or single or double).replace("\\.", "."))


def _item(i: int) -> Callable[[Any], list[Any]]:
    return lambda value: value[i : i + 1 or None] if isinstance(value, list) else []


def _member(key: str) -> Callable[[Any], list[Any]]:
    return lambda value: [value[key]] if isinstance(value, dict) and key in value else []


def _filter(condition: str) -> Callable[[Any], list[Any]]:
    match = _FILTER.match(condition)
    if match is None:
        return lambda value: []
    path, wanted = compile_path("." + match[1]), match[2] or match[3] or match[4] or ""
    return lambda value: (
        [item for item in value if list(map(_text, path(item))) == [wanted]] if isinstance(value, list) else []
    )
