"""Random CEL expressions that call every function which rules of custom resources may call, with odd values and wrong types.

The holes of a template name the types of their values: `{string}.contains({string})` in "bool". `{x:int}` makes a variable: see _MACROS.
"""

import random
import re
from typing import Any, Final

from conformance.random.cel.templates import TEMPLATES
from conformance.random.cel.values import LAYOUTS, LITERALS, PATTERNS, ZONES
from conformance.random.rules import SCHEMA

__all__ = ["SCHEMA", "Expressions"]
_CONSTANTS: Final = {"pattern": PATTERNS, "zone": ZONES, "layout": LAYOUTS}
_ORDER: Final = ("<", "<=", ">", ">=", "==", "!=")
_ORDERED: Final = ("int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp")
_LISTS: Final = (
    "list(int)",
    "list(string)",
    "list(double)",
    "list(uint)",
    "list(bool)",
    "list(bytes)",
    "list(duration)",
    "list(timestamp)",
)
_MAPS: Final = ("map(string)", "map(int)")
_EVERY: Final = (*_ORDERED, *_LISTS, *_MAPS)
_ZONED: Final = (
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
)


def _templates() -> dict[str, list[str]]:
    """Returns the templates of the table, and those that are alike for many types."""
    found = {kind: list(templates) for kind, templates in TEMPLATES.items()}
    for kind in _ORDERED:
        found["bool"] += [f"{{{kind}}} {operator} {{{kind}}}" for operator in _ORDER]
    for kind in _LISTS:
        item = kind[5:-1]
        found["bool"] += [f"{{{kind}}} == {{{kind}}}", f"{{{kind}}}.isSorted()"]
        for function in ("contains", "intersects", "equivalent"):
            found["bool"].append(f"sets.{function}({{{kind}}}, {{{kind}}})")
        found["int"] += [f"size({{{kind}}})", f"{{{kind}}}.size()"]
        found.setdefault(kind, [f"[{{{item}}}, {{{item}}}]", f"{{{kind}}}.sort()", f"{{{kind}}}.distinct()"])
    for kind in _MAPS:
        found["bool"] += [f"{{{kind}}} == {{{kind}}}", f"{{string}} in {{{kind}}}"]
        found["int"].append(f"size({{{kind}}})")
    for name in _ZONED:
        found["int"] += [f"{{timestamp}}.{name}()", f"{{timestamp}}.{name}('{{zone}}')"]
    return found


_TEMPLATES: Final = _templates()
# What `x` and `y` are in a template that makes them.
_MACRO: Final = re.compile(
    r"\.(all|exists|exists_one|existsOne|map|filter|optMap|optFlatMap|sortBy|transformList|transformMap|transformMapEntry)\(x"
)
_HOLE: Final = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")


class Expressions:
    """Expressions by their type, out of one random source; `wrong` is how likely a part has another type."""

    def __init__(self, seed: int | str, wrong: float = 0.003) -> None:
        self._random = random.Random(seed)
        self._wrong = wrong
        self._variables: list[tuple[str, str]] = []

    def pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def of(self, kind: str = "") -> str:
        """An expression of this type, or of any that can be printed."""
        self._variables = []
        return self._make(
            kind or self.pick(*_EVERY, "bool", "int", "string", "string", "dyn"), self._random.randint(1, 3)
        )

    def _make(self, kind: str, depth: int) -> str:
        if self._random.random() < self._wrong:
            kind = self.pick(*_TEMPLATES)
        near = [name for name, of in self._variables if of == kind]
        if near and self._random.random() < 0.4:
            return str(self.pick(*near))
        if depth <= 0 or not _TEMPLATES.get(kind) or self._random.random() < 0.1:
            return str(self.pick(*LITERALS[kind]))
        return self._fill(str(self.pick(*_TEMPLATES[kind])), depth - 1)

    def _fill(self, template: str, depth: int) -> str:
        """The holes filled from left to right; those behind a macro's variables may use them."""
        made: list[str] = []
        end, before = 0, len(self._variables)
        macro = _MACRO.search(template)
        first = ""
        for hole in _HOLE.finditer(template):
            made.append(template[end : hole.start()])
            end = hole.end()
            name = hole[1]
            if name is None:
                made.append(hole[0][0])
                continue
            if macro and hole.start() > macro.start() and len(self._variables) == before:
                self._variables += self._bound(first, ", y," in template)
            first = first or name
            made.append(str(self.pick(*_CONSTANTS[name])) if name in _CONSTANTS else self._make(name, depth))
        del self._variables[before:]
        return "".join(made) + template[end:]

    @staticmethod
    def _bound(over: str, two: bool) -> list[tuple[str, str]]:
        item = over[over.find("(") + 1 : -1] if "(" in over else over
        if over.startswith("map"):
            return [("x", "string"), ("y", item)] if two else [("x", "string")]
        return [("x", "int"), ("y", item)] if two else [("x", item)]
