"""Empty lists and maps, which Go distinguishes from absent ones until an object is stored.

Decoding drops them from an object and keeps them separately, by their steps: {("spec", "ports"): []}.
"""

from typing import TYPE_CHECKING, Any

from fakeapiserver.apimachinery.managedfields.emptied import step_into
from fakeapiserver.apimachinery.meta import Object, copied

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties


def restore_empties(obj: Object, empties: "Empties") -> None:
    """Puts empty lists and maps back where decoding has left null; fields that Go omits when empty stay absent."""
    for steps, empty in empties.items():
        target: Any = obj
        for step in steps[:-1]:
            target = target.get(step) if isinstance(target, dict) else None
        if isinstance(target, dict) and target.get(steps[-1], empty) is None:
            target[steps[-1]] = empty


def as_sent(obj: Object, empties: "Empties") -> Object:
    """A copy of the object with all empty lists and maps whose parents still exist."""
    sent: Object = copied(obj)
    for steps, empty in empties.items():
        target: Any = sent
        for step in steps[:-1]:
            target = step_into(target, step)
        if isinstance(target, dict) and target.get(str(steps[-1])) is None:
            target[str(steps[-1])] = empty
    return sent
