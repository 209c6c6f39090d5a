"""Follows a value of the custom resource into other objects: one value arrives literally, and a later one has no effect there."""

import json
from collections.abc import Iterator
from typing import Any

from fakeapiserver.state import diff
from fakeapiserver.sweep import kinds
from fakeapiserver.sweep.exploring import excuses
from fakeapiserver.sweep.exploring.cases import Case
from fakeapiserver.sweep.exploring.comparable import comparable
from fakeapiserver.sweep.exploring.trial import Trial
from fakeapiserver.sweep.states import State

# The title of an object, and the path of a field in it.
Place = tuple[str, str]


def value_of(tried: Case) -> str | int | float | None:
    """The value that the last move of a case sets, or None if it isn't one text or number: an empty text and 0 often mean the default."""
    [*_, move] = tried or [()]
    if len(move) != 1 or not move[0].value:
        return None
    value = json.loads(move[0].value)
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) and value else None


def places(value: Any, learnt: State, state: State, title: str) -> dict[Place, Any]:
    """The fields of objects other than the custom resource `title` that have the value literally, with the values that they had before."""
    learnt, state = comparable(learnt), comparable(state)
    return {
        (other, each.path): each.old
        for other in learnt.keys() & state.keys() - {title}
        for each in diff.fields(other.partition(" ")[0], learnt[other], state[other])
        if type(each.new) is type(value) and each.new == value
    }


def ignored(tried: Case, trial: Trial, learnt: State, title: str) -> Iterator[tuple[str, str]]:
    """If a case sets a field to two values, one after the other: the places where the first one arrives although the second one changes
    nothing there and is nowhere, not even if the object is created with it. Each place comes with a sentence about it."""
    if len(tried) != 2 or trial.between is None or trial.created is None or trial.there.told:
        return
    first, second = value_of(tried[:1]), value_of(tried)
    if first is None or second is None or tried[0][0].path != tried[1][0].path:
        return
    there, created = trial.there.state, trial.created.state
    if any(_is_anywhere(second, learnt, state, title) for state in (there, created)):
        return
    for (other, path), before in places(first, learnt, trial.between, title).items():
        if other not in there or other not in created or excuses.is_same_quantity(before, second):
            continue
        if all(_value_at(learnt, state, other, path) in (diff.ABSENT, before, first) for state in (there, created)):
            spoken = kinds.spoken(other, there[other].get("kind", ""))
            yield (
                f"{other.partition(' ')[0]} {path}",
                f"{path} of {spoken} follows {tried[0][0].id}, but not {tried[1][0].id}, and no error is reported",
            )


def _value_at(learnt: State, state: State, title: str, path: str) -> Any:
    """The value of a field, ABSENT if it is that of the `learnt` state."""
    fields = diff.fields(title.partition(" ")[0], learnt[title], state[title])
    return next((each.new for each in fields if each.path == path), diff.ABSENT)


def _is_anywhere(value: Any, learnt: State, state: State, title: str) -> bool:
    """Reports whether any other object has got the value, perhaps as a part of a text."""
    text = value if isinstance(value, str) else json.dumps(value)
    news = [
        each.new
        for other in state.keys() - {title}
        for each in diff.fields(other.partition(" ")[0], learnt.get(other, {}), state[other])
        if each.new is not diff.ABSENT
    ]
    return any(text in json.dumps(each, ensure_ascii=False) for each in news)
