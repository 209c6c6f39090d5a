"""Large frames of watches, which are kept once for all connections that still have to send them.

A watcher that has fallen behind reads events of its own from the history, so it doesn't find the frames of the others there.
"""

from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from fakeapiserver.storage.interface import StoredObject

# Frames of smaller objects are cheaper to make again than to find.
LARGE: Final = 16 * 1024


class _Frame(bytearray):
    """Bytes that can be referred to weakly. `source` is the object that they show."""

    __slots__ = ("__weakref__", "source")
    source: StoredObject


class SharedFrames:
    """The large frames of one resource that are in use."""

    def __init__(self) -> None:
        # By the object's id, which no other object has as long as the frame keeps its source, by type and by form.
        self._frames: WeakValueDictionary[tuple[int, str, str], _Frame] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._frames)

    def frame(self, kind: str, form: str, source: StoredObject, encode: Callable[[], bytes]) -> memoryview:
        """Returns the frame of an event's type (`kind`) that shows `source` in a form, encoded if no connection sends it now."""
        key = (id(source), kind, form)
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = _Frame(encode())
            frame.source = source
        return memoryview(frame).toreadonly()
