"""Empty lists and maps: Go tells them from none until an object is stored, so an answer made of what was sent has them."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from fakeapiserver.apimachinery.meta import Object

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties, Steps


def restore_empties(obj: Object, empties: "Empties") -> None:
    """Puts them back where the decoding has left null in their place; what is left out when it is empty stays away."""
    for steps, empty in empties.items():
        target: Any = obj
        for step in steps[:-1]:
            target = target.get(step) if isinstance(target, dict) else None
        if isinstance(target, dict) and target.get(steps[-1], empty) is None:
            target[steps[-1]] = empty


def as_sent(obj: Object, empties: "Empties") -> Object:
    """A copy with all of them where what is around them is still there."""
    found = deepcopy(obj)
    for steps, empty in empties.items():
        target: Any = found
        for step in steps[:-1]:
            target = _at(target, step)
        if isinstance(target, dict) and target.get(str(steps[-1])) is None:
            target[str(steps[-1])] = empty
    return found


def is_empty(obj: Object, steps: "Steps") -> bool:
    """Whether what was sent empty still is: defaults may have filled it."""
    target: Any = obj
    for step in steps:
        target = _at(target, step)
    return not target


def _at(value: Any, step: str | int) -> Any:
    if isinstance(value, list):
        return value[step] if isinstance(step, int) and step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None
