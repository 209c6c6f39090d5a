"""The Accept header as clauses, best first.

Upstream: github.com/munnerz/goautoneg/autoneg.go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Clause:
    """`application/json;q=0.5;as=Table` in parts."""

    type: str
    subtype: str
    quality: float = 1.0
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)

    def takes(self, media_type: str) -> bool:
        kind, _, subtype = media_type.partition("/")
        return (self.type == kind and self.subtype in (subtype, "*")) or self.type == self.subtype == "*"


@lru_cache(maxsize=1024)
def parse(header: str) -> tuple[Clause, ...]:
    """Every well-formed clause, in the order upstream tries them."""
    clauses: list[Clause] = []
    for part in header.split(","):
        clause = _clause(part)
        if clause is None:
            continue
        # Upstream's order is not a total one, so the way it sorts decides: step by step towards the front.
        at = len(clauses)
        while at and _before(clause, clauses[at - 1]):
            at -= 1
        clauses.insert(at, clause)
    return tuple(clauses)


def _clause(text: str) -> Clause | None:
    media, *rest = text.strip(" ").split(";")
    kind, slash, subtype = media.partition("/")
    if not subtype:
        if kind.strip(" ") != "*":
            return None
        subtype = "*"
    if slash and "/" in subtype.removesuffix("/"):
        return None
    quality, parameters = 1.0, {}
    for item in rest:
        key, _, value = item.partition("=")
        if not value or "=" in value.removesuffix("="):
            continue
        value = value.removesuffix("=")
        if key.strip(" ") == "q":
            quality = _number(value)
        else:
            parameters[key.strip(" ")] = value.strip(" ")
    return Clause(kind.strip(" "), subtype.removesuffix("/").strip(" "), quality, parameters)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _before(left: Clause, right: Clause) -> bool:
    return (
        left.quality > right.quality
        or (left.type != "*" and right.type == "*")
        or (left.subtype != "*" and right.subtype == "*")
    )
