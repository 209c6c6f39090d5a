"""Steps for attributes: variables, and chains of fields and indexes on them."""

from collections.abc import Sequence
from typing import Any

from fakeapiserver.languages.cel.errors import CelError, no_such_overload
from fakeapiserver.languages.cel.escaping import escape, unescape
from fakeapiserver.languages.cel.functions.containers import index, optional_index
from fakeapiserver.languages.cel.interpreter.steps import Frame, Function, Step
from fakeapiserver.languages.cel.types import Type, unwrap_optional
from fakeapiserver.languages.cel.values import NONE, BadField, JSONPatch, Lazy, Optional, found_in, key_text


class Field:
    """A selection by a name or constant; `is_struct`: a null is absent."""

    __slots__ = ("is_struct", "key")

    def __init__(self, key: Any, is_struct: bool) -> None:
        self.key = key
        self.is_struct = is_struct


class OptionalField(Field):
    """`.?name`, `[?constant]`."""

    __slots__ = ()


class Dynamic:
    """An index that is computed."""

    __slots__ = ("_find", "_key", "is_optional")

    def __init__(self, key: Step, find: Function, is_optional: bool) -> None:
        self._key = key
        self._find = find
        self.is_optional = is_optional

    def __call__(self, frame: Frame) -> Any:
        return (self._find, self._key(frame))


def field_link(operand: Type, name: str) -> Field:
    is_struct = unwrap_optional(operand)[0].kind == "struct"
    return Field(unescape(name) if is_struct else name, is_struct)


def variable_step(number: int, cost: int) -> Step:
    def variable(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[number]
        if type(value) is BadField:
            raise CelError(value.message)
        return value

    return variable


def _get(value: Any, link: Any, frame: Frame) -> Any:
    """Evaluates one step of a chain."""
    if isinstance(link, Field):
        if type(value) is dict:
            is_there, item = found_in(value, link.key)
            if not is_there or (item is None and link.is_struct):
                raise CelError(f"no such key: {escape(link.key) if link.is_struct else key_text(link.key)}")
        else:
            item = index(value, link.key)
    else:
        find, key = link(frame)
        item = find(value, key)
    if type(item) is BadField:
        raise CelError(item.message)
    return item


def chained(base: int | Step, path: Sequence[Step | Field], cost: int) -> Step:
    links = list(path)
    names = [link.key for link in links if type(link) is Field and link.is_struct]
    if isinstance(base, int) and len(names) == len(links):
        return _fields_of(base, names, cost)
    if any(isinstance(link, OptionalField) or (isinstance(link, Dynamic) and link.is_optional) for link in links):
        return _optional_chain(base, links, cost)

    def chain(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[base] if isinstance(base, int) else base(frame)
        for link in links:
            value = _get(value, link, frame)
        return value

    return chain


def _optional_chain(base: int | Step, links: list[Any], cost: int) -> Step:
    """From its first optional step on a chain has an optional value; steps behind an absent one cost nothing."""

    def chain(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[base] if isinstance(base, int) else base(frame)
        optional = False
        for i, link in enumerate(links):
            is_dynamic = isinstance(link, Dynamic)
            optional = optional or isinstance(link, OptionalField) or (is_dynamic and link.is_optional)
            if not optional:
                value = _get(value, link, frame)
                continue
            key = link(frame)[1] if is_dynamic else link.key
            item = optional_index(value, key)
            if not item.has_value or (item.value is None and not is_dynamic and link.is_struct):
                frame.cost -= len(links) - i
                return NONE
            value = item.value
            if type(value) is BadField:
                raise CelError(value.message)
        return Optional(True, value)

    return chain


def _field_of(number: int, name: str, cost: int) -> Step:
    missing = f"no such key: {escape(name)}"

    def field(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[number]
        if type(value) is not dict:
            if isinstance(value, Lazy | JSONPatch | Optional) or value is None:
                return index(value, name)
            raise no_such_overload()
        value = value.get(name)
        if value is None:
            raise CelError(missing)
        if type(value) is BadField:
            raise CelError(value.message)
        return value

    return field


def _fields_of(number: int, names: list[str], cost: int) -> Step:
    """The commonest chain: fields of a variable."""

    if len(names) == 1:
        return _field_of(number, names[0], cost)
    escaped = {name: escape(name) for name in names}

    def fields(frame: Frame) -> Any:
        frame.cost += cost
        value = frame.variables[number]
        for name in names:
            if type(value) is not dict:
                if isinstance(value, Lazy | Optional) or value is None:
                    value = index(value, name)
                    continue
                raise no_such_overload()
            value = value.get(name)
            if value is None:
                raise CelError(f"no such key: {escaped[name]}")
        if type(value) is BadField:
            raise CelError(value.message)
        return value

    return fields
