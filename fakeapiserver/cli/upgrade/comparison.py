"""The differences between two trials of one command, without what differs between two trials of the same version, too."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from fakeapiserver.cli.upgrade.trial import Kind, Trial
from fakeapiserver.sweep import states

_Key = TypeVar("_Key", Kind, tuple[str, str])


class Counted(Struct, frozen=True):
    """A kind of answers, and how many there were."""

    kind: Kind
    times: int


class Added(Struct, frozen=True):
    """A field that one version adds to objects as they are created, with the value of the first one."""

    resource: str
    field: str
    value: Any


class Comparison(Struct, frozen=True):
    """The behaviour of one version that the other has not; each pair is of the old version and the new one.

    - `statuses`: the command's exit statuses. `requests`: how many requests it sent.
    - `refusals`, `warnings`: the kinds of answers that only one version gave.
    - `added`: the fields that only one version added to created objects.
    - `objects`: how the objects of the new version differ at the end.
    """

    statuses: tuple[int, int]
    requests: tuple[int, int]
    refusals: tuple[list[Counted], list[Counted]]
    warnings: tuple[list[Counted], list[Counted]]
    added: tuple[list[Added], list[Added]]
    objects: list[states.Difference]

    @property
    def is_empty(self) -> bool:
        """Reports whether nothing differs but the number of requests."""
        pairs = (*self.refusals, *self.warnings, *self.added, self.objects)
        return self.statuses[0] == self.statuses[1] and not any(pairs)


def compare(old: Trial, new: Trial, again: Trial | None = None) -> Comparison:
    """`again`: another trial of the old version. What differs between the two of them is left out."""
    olds = [old] if again is None else [old, again]
    noise = states.noise_of(old.state, again.state) if again is not None else frozenset[str]()
    return Comparison(
        (old.status, new.status),
        (old.requests, new.requests),
        _counted([trial.refusals for trial in olds], new.refusals),
        _counted([trial.warnings for trial in olds], new.warnings),
        _added(olds, new),
        states.differences(old.state, new.state, noise),
    )


def _counted(olds: Sequence[Mapping[Kind, int]], new: Mapping[Kind, int]) -> tuple[list[Counted], list[Counted]]:
    before, after = _one_sided(olds, new)
    return [Counted(kind, olds[0][kind]) for kind in before], [Counted(kind, new[kind]) for kind in after]


def _added(olds: Sequence[Trial], new: Trial) -> tuple[list[Added], list[Added]]:
    """Only of resources that both versions' trials created."""
    both = set(new.added).intersection(*(trial.added for trial in olds))
    *befores, now = (
        {(resource, field) for resource in both for field in trial.added[resource]} for trial in (*olds, new)
    )
    before, after = _one_sided(befores, now)
    return [Added(*key, olds[0].added[key[0]][key[1]]) for key in before], [
        Added(*key, new.added[key[0]][key[1]]) for key in after
    ]


def _one_sided(olds: Sequence[Collection[_Key]], new: Collection[_Key]) -> tuple[list[_Key], list[_Key]]:
    """The keys that each of the old ones has and the new one has not, and the other way round, sorted."""
    before = [key for key in olds[0] if key not in new and all(key in each for each in olds)]
    return sorted(before), sorted(key for key in new if not any(key in each for each in olds))
