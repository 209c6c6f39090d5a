"""Suggestions of the CEL rules of a schema (`x-kubernetes-validations`): values that they name, and fields that must change together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Schema = Mapping[str, Any]

_LITERALS: Final = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(?<![\w.\]])(-?\d+)(?![\w.])""")
_MEMBERS: Final = re.compile(r"\b(?:self|oldSelf)\s*\.\s*\??([A-Za-z_]\w*)")
_PATTERN: Final = re.compile(r"[\^$\\*+?\[{]")
_SIZE: Final = re.compile(r"\bsize\s*\(")


def hints(schema: Schema, parent: Schema, name: str) -> list[Any]:
    """Values that the rules of a field and of its object name: texts for a text, and for a number those around each."""
    rules = [*_rules(schema), *(rule for rule in _rules(parent) if name in _MEMBERS.findall(rule))]
    literals = [each for rule in rules for each in _literals(rule)]
    match schema.get("type"):
        case "string":
            return [*dict.fromkeys(each for each in literals if isinstance(each, str))]
        case "integer":
            numbers = [each for each in literals if isinstance(each, int)]
            return [*dict.fromkeys(near for each in numbers for near in (each, each + 1, each - 1))]
        case _:
            return []


def sizes(schema: Schema, parent: Schema, name: str) -> list[int]:
    """Lengths of a list or text that its rules name."""
    rules = [*_rules(schema), *(rule for rule in _rules(parent) if name in _MEMBERS.findall(rule))]
    sized = [rule for rule in rules if _SIZE.search(rule)]
    return [*dict.fromkeys(each for rule in sized for each in _literals(rule) if isinstance(each, int))]


def partners(schema: Schema, name: str) -> Sequence[str]:
    """The members that a rule of their object names together with this one: an object may be valid only if both are changed."""
    together = [set(_MEMBERS.findall(rule)) for rule in _rules(schema)]
    return sorted({other for members in together if name in members for other in members} - {name})


def _rules(schema: Schema) -> Iterator[str]:
    for each in schema.get("x-kubernetes-validations") or ():
        if isinstance(each, Mapping):
            yield str(each.get("rule", ""))


def _literals(rule: str) -> Iterator[str | int]:
    for match in _LITERALS.finditer(rule):
        if match[3] is not None:
            yield int(match[3])
            continue
        text = match[1] if match[1] is not None else match[2]
        if not _PATTERN.search(text):
            yield text
