r"""Field selectors: `metadata.name=web,status.phase!=Running`, with `\,` `\=` and `\\` in values.

Upstream: k8s.io/apimachinery/pkg/fields/selector.go.
"""

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

_ESCAPED = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})


class Requirement(Struct, frozen=True):
    """`operator` is `=` or `!=`."""

    field: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{self.value.translate(_ESCAPED)}"


class Selector(Struct, frozen=True, dict=True):
    """All requirements must hold; without any, everything is selected."""

    requirements: tuple[Requirement, ...]

    @property
    def empty(self) -> bool:
        return not self.requirements

    @cached_property
    def _exact(self) -> dict[str, str]:
        return {r.field: r.value for r in reversed(self.requirements) if r.operator == "="}

    @cached_property
    def _by_field(self) -> dict[str, tuple[set[str], set[str]]]:
        """The values that a field must have, each of them, and those that it must not have."""
        by_field: dict[str, tuple[set[str], set[str]]] = {}
        for requirement in self.requirements:
            values = by_field.setdefault(requirement.field, (set(), set()))
            values[requirement.operator == "!="].add(requirement.value)
        return by_field

    def matches(self, values: Mapping[str, str]) -> bool:
        for field, (required, excluded) in self._by_field.items():
            value = values.get(field, "")
            if value in excluded or (required and required != {value}):
                return False
        return True

    def requires_exact_match(self, field: str) -> str | None:
        """The one value that the field must have, None where it is free."""
        return self._exact.get(field)

    def renamed(self, names: Mapping[str, str]) -> "Selector":
        """The same about other fields; `names` has each of its fields."""
        return Selector(tuple(Requirement(names[r.field], r.operator, r.value) for r in self.requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse(text: str) -> Selector:
    """Parses a field selector. Raises ValueError with upstream's text for an invalid one."""
    terms = sorted(term for term in _split_terms(text) if term)
    requirements = (_requirement(term, text) for term in terms)
    # Upstream takes `=` alone, without field and value, for no requirement at all.
    return Selector(tuple(r for r in requirements if r.field or r.value))


def _split_terms(text: str) -> list[str]:
    terms, start, escaped = [], 0, False
    for i, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:i])
            start = i + 1
    return [*terms, text[start:]]


def _requirement(term: str, text: str) -> Requirement:
    for i in range(len(term)):
        for operator in ("!=", "==", "="):
            if term.startswith(operator, i):
                value = unescape(term[i + len(operator) :])
                return Requirement(term[:i], "!=" if operator == "!=" else "=", value)
    raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")


def unescape(text: str) -> str:
    """ValueError for unknown escapes, and for commas and equals signs that aren't escaped."""
    if not any(character in text for character in "\\,="):
        return text
    parts: list[str] = []
    escaped = False
    for character in text:
        if escaped:
            if character not in "\\,=":
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{character}")
            parts.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            parts.append(character)
    if escaped:
        raise ValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(parts)
