"""The Accept header as clauses, best first.

Upstream: github.com/munnerz/goautoneg/autoneg.go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

# Bytes of an Accept header that count: the rest of a longer one is ignored.
_LONGEST: Final = 8 * 1024
# Bytes of the longest header that is remembered with its result.
_LONGEST_REMEMBERED: Final = 1024
# Upstream's sort inserts one clause after the other up to so many.
_FEW: Final = 12

Negotiate = TypeVar("Negotiate", bound=Callable[..., Any])


def remembered(count: int) -> Callable[[Negotiate], Negotiate]:
    """Decorates a function of an Accept header, whose results for short headers are remembered. Of a long header it gets the beginning."""

    def decorate(function: Negotiate) -> Negotiate:
        remembering = lru_cache(maxsize=count)(function)

        @wraps(function)
        def call(header: str, *arguments: Any, **named: Any) -> Any:
            if len(header) <= _LONGEST_REMEMBERED:
                return remembering(header, *arguments, **named)
            return function(header[:_LONGEST], *arguments, **named)

        return cast(Negotiate, call)

    return decorate


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


@remembered(1024)
def parse(header: str) -> tuple[Clause, ...]:
    """Every well-formed clause, in the order upstream tries them."""
    clauses = [clause for part in header.split(",") if (clause := _clause(part)) is not None]
    if len(clauses) > _FEW:
        return tuple(sorted(clauses, key=_rank))
    # Upstream's order is not a total one, so the way it sorts decides: step by step towards the front.
    for i, clause in enumerate(clauses):
        at = i
        while at and _before(clause, clauses[at - 1]):
            at -= 1
        clauses.insert(at, clauses.pop(i))
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


def _rank(clause: Clause) -> tuple[float, bool, bool]:
    return (-clause.quality, clause.type == "*", clause.subtype == "*")
