"""Changes that the server refuses alone and accepts with another one, because a rule is about two fields."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from fakeapiserver.sweep.exploring import rules, values
from fakeapiserver.sweep.exploring.cases import Case, Move
from fakeapiserver.sweep.exploring.changes import Change, Path
from fakeapiserver.sweep.exploring.values import Schema

_TRIES: Final = 24


def allowed(
    schema: Schema, every: Sequence[Change], is_allowed: Callable[[Case], bool], refused: list[Change]
) -> Iterator[Move]:
    """The moves that the server allows. Changes that are in none of them are added to `refused`."""
    pairs = set[Move]()
    for change in every:
        if is_allowed(((change,),)):
            yield (change,)
            continue
        partners = [each for each in _partners(schema, change, every) if not _overlap(each.path, change.path)]
        move = next((both for each in partners[:_TRIES] if is_allowed((both := (change, each),))), None)
        if move is None:
            refused.append(change)
        elif move[::-1] not in pairs:
            pairs.add(move)
            yield move


def _partners(schema: Schema, change: Change, every: Sequence[Change]) -> Iterator[Change]:
    """The changes of fields that a rule names together with this one, those nearest to it first."""
    for depth in range(len(change.path) - 1, -1, -1):
        outer = change.path[:depth]
        for name in rules.partners(_at(schema, outer), str(change.path[depth])):
            yield from (each for each in every if each.path[: depth + 1] == (*outer, name))


def _at(schema: Schema, path: Path) -> Schema:
    """The schema at a path, or {} if no field has that path."""
    at: Any = schema
    for part in path:
        outer = values.merged(at)
        at = outer.get("items") if isinstance(part, int) else values.properties(outer).get(part)
        at = at or values.values_of_map(outer) or {}
    found: Schema = at
    return found


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
