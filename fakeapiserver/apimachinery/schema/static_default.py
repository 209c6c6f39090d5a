"""Defaults of built-in kinds that are facts of their schema: `protocol: TCP`, `fsType: ext4`.

Upstream: the `+default` markers of k8s.io/api, from which k8s.io/kubernetes generates zz_generated.defaults.go.
Most defaults are not of this kind: they come from Go code of the kinds' own.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference

Step = Callable[[Any], None]


class StaticDefaults:
    """The static defaults of one set of definitions, found definition by definition on first use."""

    __slots__ = ("_definitions", "_having", "_steps")

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._having: frozenset[str] | None = None
        self._steps: dict[str, Step] = {}

    def apply(self, name: str, value: Any) -> None:
        """Fills in what a decoded value of a definition leaves out, in place."""
        if self._having is None:
            self._having = _having_defaults(self._definitions)
        if name in self._having:
            self._step(name)(value)

    def _step(self, name: str) -> Step:
        if name not in self._steps:
            properties = self._definitions[name].get("properties", {})
            presets = {key: prop["default"] for key, prop in properties.items() if is_static(prop)}
            below = [(key, self._descent(prop)) for key, prop in properties.items() if self._leads_on(prop)]
            self._steps[name] = _step(presets, below)
        return self._steps[name]

    def _leads_on(self, prop: Schema) -> bool:
        return any(target in (self._having or ()) for target in _targets(prop))

    def _descent(self, prop: Schema) -> Step:
        if name := reference(prop):
            return partial(self.apply, name)
        if prop.get("type") == "array":
            inner = self._descent(prop["items"])
            return lambda value: _each(value, inner)
        inner = self._descent(prop["additionalProperties"])
        return lambda value: _each(value.values(), inner)


def is_static(prop: Schema) -> bool:
    """Reports whether a field's default says more than its type's zero value."""
    return prop.get("default") not in (None, {}, "", 0, False)


def _each(values: Iterable[Any], step: Step) -> None:
    for value in values:
        step(value)


def _step(presets: dict[str, Any], below: list[tuple[str, Step]]) -> Step:
    def fill(value: dict[str, Any]) -> None:
        for key, preset in presets.items():
            if key not in value:
                value[key] = preset
        for key, descend in below:
            if value.get(key):
                descend(value[key])

    return fill


def _targets(prop: Schema) -> Iterable[str]:
    """The definition a field, its elements or its values are of."""
    if name := reference(prop):
        return (name,)
    inner = prop.get("items") or prop.get("additionalProperties")
    return _targets(inner) if isinstance(inner, dict) else ()


def _having_defaults(definitions: Definitions) -> frozenset[str]:
    """The definitions that have static defaults, or have a field that has."""
    users: dict[str, list[str]] = {}
    having = set[str]()
    for name, schema in definitions.items():
        for prop in schema.get("properties", {}).values():
            if is_static(prop):
                having.add(name)
            for target in _targets(prop):
                users.setdefault(target, []).append(name)
    todo = list(having)
    while todo:
        using = [user for user in users.get(todo.pop(), ()) if user not in having]
        having.update(using)
        todo += using
    return frozenset(having)
