"""The bugs that are planted in a server, by name."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct


class Bug(Struct, frozen=True):
    """`plant` changes the code of this process. `store`: where the bug can be, "" for everywhere. The rest says under which disturbances
    it shows: `kinds` in turn, `disturbances` in number, on an etcd of so many `members`, with a `compaction` each so many seconds."""

    name: str
    plant: Callable[[], None]
    store: str
    kinds: Sequence[str]
    disturbances: int
    members: int
    compaction: float
    reflectors: int


BUGS: Final[dict[str, Bug]] = {}


def planted(
    store: str = "",
    *kinds: str,
    disturbances: int = 3,
    members: int = 1,
    compaction: float = 0.0,
    reflectors: int = 8,
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers a function that plants a bug, by its name."""

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        name = plant.__name__
        BUGS[name] = Bug(name, plant, store, kinds, disturbances, members, compaction, reflectors)
        return plant

    return register
