"""Cases of an exploration: a custom resource is changed in one or two steps, and then changed back."""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.sweep.exploring.changes import Change

NOTHING: Final = "no change"
_THEN: Final = ", then "
_WITH: Final = ", with "

# Changes that are made in one write.
Move = tuple[Change, ...]
# The moves of a case, one after the other. Without any, the operator is only started again.
Case = tuple[Move, ...]


def id_of(case: Case) -> str:
    """`spec.least = 5, with spec.most = 5, then spec.tls unset`"""
    return _THEN.join(_WITH.join(change.id for change in move) for move in case) or NOTHING


def named(changes: Sequence[Change], name: str) -> Case:
    """The case of this name. Raises ValueError if it names a change that isn't among `changes`."""
    if name == NOTHING:
        return ()
    by_id = {each.id: each for each in changes}
    moves = [part.split(_WITH) for part in name.split(_THEN)]
    for part in itertools.chain(*moves):
        if part not in by_id:
            raise ValueError(f"there is no change {part!r} of this custom resource; --plan lists some")
    return tuple(tuple(by_id[part] for part in move) for move in moves)


def fields_of(case: Case) -> list[str]:
    """The paths in the schema of the fields that a case changes."""
    return list(dict.fromkeys(change.field for move in case for change in move))


def patch_of(move: Move) -> list[dict[str, Any]]:
    """A move as a JSON patch."""
    return [each for change in move for each in change.patch]


def changed(obj: Object, case: Case) -> Object:
    """A copy of the object with all changes of the case. Raises LookupError if the object of a field is missing."""
    for move in case:
        for change in move:
            obj = change.of(obj)
    return obj


def pairs(moves: Sequence[Move], is_allowed: Callable[[Case], bool]) -> Iterator[Case]:
    """Two moves of different fields, one after the other, in an order without a pattern."""
    several = [
        (one, other)
        for one, other in itertools.permutations(moves, 2)
        if not any(_overlap(first, second) for first in one for second in other)
    ]
    several.sort(key=lambda pair: hashlib.sha256(id_of(pair).encode()).digest())
    return (pair for pair in several if is_allowed(pair))


def _overlap(one: Change, other: Change) -> bool:
    shorter = min(len(one.path), len(other.path))
    return one.path[:shorter] == other.path[:shorter]
