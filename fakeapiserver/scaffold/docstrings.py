"""The strings below a class's fields: pydantic reads those of its models itself; for other classes the source is read."""

import ast
import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec


def attribute_docstrings(model: type[Any]) -> Mapping[str, Mapping[str, str]]:
    """By class and field (its name on the wire), of a dataclass or struct and all that are in it. Nothing for a class without a
    source."""
    return {cls.__name__: _of(cls) for cls in _classes(model, set())}


def _classes(model: type[Any], seen: set[type[Any]]) -> Iterator[type[Any]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for annotation in typing.get_type_hints(model).values():
        for cls in _types(annotation):
            if dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct):
                yield from _classes(cls, seen)


def _types(annotation: Any) -> Iterator[type[Any]]:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _types(inner)


def _of(model: type[Any]) -> Mapping[str, str]:
    names = (
        {row.name: row.encode_name for row in msgspec.structs.fields(model)}
        if issubclass(model, msgspec.Struct)
        else {}
    )
    docstrings: dict[str, str] = {}
    for ancestor in reversed(model.__mro__):
        for name, text in _in_source(ancestor):
            docstrings[names.get(name, name)] = text
    return docstrings


def _in_source(model: type[Any]) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    except (OSError, TypeError, SyntaxError):
        return
    body = getattr(tree.body[0], "body", [])
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, inspect.cleandoc(words)
