"""Python's collection of garbage, in a process that holds very many objects without cycles."""

import gc
from collections.abc import Mapping
from typing import Any, Final

_OLDEST: Final = 2
_LEAST_BETWEEN: Final = 2_000_000
# New objects that come together only where collections were paused (effort.without_collections): a collection of them takes 2 ms.
_PAUSED: Final = 20_000
# New objects before a collection of the youngest generation, and collections of each generation before one of the next. Python's own
# thresholds let 77,000 objects come together for the oldest, which takes 20 ms; these 8,400. Each object is looked at as often with any.
_THRESHOLDS: Final = (700, 5, 1)


class SetAside:
    """Sets the survivors of each collection of the oldest generation aside (`gc.freeze`), so that the next one, for which everything waits,
    looks at newer objects only.

    When more objects were set aside than the last complete collection has left, and at least `least_between`, the next one is complete: it
    frees cycles among old objects, too. So the work grows with the number of new objects, not with the number of all.

    Objects that came together while collections were paused are set aside without a look at them: of a million, it would take 100 ms.
    """

    def __init__(self, least_between: int = _LEAST_BETWEEN) -> None:
        self._least_between = least_between
        self._left = 0
        self._aside = 0
        self._is_complete = False
        self._thresholds = gc.get_threshold()

    def __enter__(self) -> None:
        """Sets everything that there is aside, and lets garbage be collected."""
        gc.freeze()
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*_THRESHOLDS)
        gc.callbacks.append(self._notice)
        gc.enable()

    def __exit__(self, *error: object) -> None:
        """Gives all objects back to ordinary collections."""
        gc.callbacks.remove(self._notice)
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def _notice(self, phase: str, collection: Mapping[str, Any]) -> None:
        if phase == "start" and (new := gc.get_count()[0]) > _PAUSED:
            gc.freeze()
            self._aside += new
            self._is_complete = False
            return
        if collection["generation"] != _OLDEST:
            return
        if phase == "start":
            self._is_complete = self._aside > max(self._left, self._least_between)
            if self._is_complete:
                gc.unfreeze()
            return
        survivors = len(gc.get_objects(_OLDEST))
        gc.freeze()
        if self._is_complete:
            self._left, self._aside = survivors, 0
        else:
            self._aside += survivors
