"""Invariants: what must hold for the objects at every moment, not only in the end.

They are checked after each write of any client or controller, by going through the history of a run again.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from fakeapiserver.apimachinery.cel import typed
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.state.changes import ObjectChange


class Moment:
    """All objects after a write."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}

    def list(self, resource: str, namespace: str = "") -> Sequence[Object]:
        """The objects of a resource such as `pods` or `widgets.example.com`, in one namespace or all."""
        objects = self._objects.get(resource, {})
        return [obj for (place, _), obj in objects.items() if namespace in ("", place)]

    def apply(self, change: ObjectChange) -> None:
        """Makes it the moment after this write."""
        of_resource = self._objects.setdefault(change.resource, {})
        obj = change.after if change.after is not None else change.before
        assert obj is not None
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if change.after is None:
            of_resource.pop(key, None)
        else:
            of_resource[key] = change.after


class Invariant(Struct, frozen=True):
    """`holds` returns something true, or None, as long as all is well. It may raise AssertionError. It is asked after writes of
    `resource`, or after all if that is empty."""

    name: str
    holds: Callable[[Moment], object]
    resource: str = ""


class Violation(Struct, frozen=True):
    """An invariant that didn't hold at a revision, the first of the run."""

    invariant: str
    revision: int
    text: str


def of_cel(name: str, resource: str, expression: str) -> Invariant:
    """An invariant in CEL, in which `objects` are those of the resource. Raises ValueError with the compiler's words."""
    program = typed.compile_typed(expression, Declared({"objects": types.list_of(types.DYN)}), types.BOOL)

    def holds(moment: Moment) -> bool:
        return program.evaluate({"objects": [*moment.list(resource)]}).value is True

    return Invariant(name, holds, resource)


def violations(changes: Iterable[ObjectChange], invariants: Sequence[Invariant]) -> list[Violation]:
    """The first violation of each invariant."""
    moment, left, found = Moment(), [*invariants], list[Violation]()
    for change in changes:
        moment.apply(change)
        for invariant in [each for each in left if each.resource in ("", change.resource)]:
            text = _broken(invariant, moment)
            if text is not None:
                found.append(Violation(invariant.name, change.revision, text))
                left.remove(invariant)
        if not left:
            break
    return found


def _broken(invariant: Invariant, moment: Moment) -> str | None:
    """Returns None while it holds, and else the words of its assertion, if it has any."""
    try:
        result = invariant.holds(moment)
    except (AssertionError, LookupError, TypeError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    return None if result is None or result else ""
