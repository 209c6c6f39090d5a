"""The order in which perturbations are tried: what is new first, since time may run out and a bug is found once."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final

from fakeapiserver.sweep.perturbation import Kind, Perturbation

# The most published bugs of operators are in the first ones. `slow` shows for sure what a crash shows if the operator loses a race.
_PROMISE: Final[tuple[tuple[Kind, int], ...]] = (
    ("slow", 0),
    ("crash", 0), ("stale", 0), ("unobserved", 0), ("away", 0), ("conflict", 0), ("refuse", 500), ("refuse", 504), ("refuse", 409),
    ("webhook", 0), ("reordered", 0), ("late", 0), ("lease", 0), ("restart", 0), ("clock", 0),
)  # fmt: skip


def by_promise(perturbations: Iterable[Perturbation]) -> list[Perturbation]:
    """The perturbations, first one of each class, then the second ones, and so on. Writes of the same verb to the same resource are of one
    class, since most come from the same lines of an operator."""
    rounds: Counter[Hashable] = Counter()
    ordered: list[tuple[int, int, int, Perturbation]] = []
    for each in perturbations:
        key = _class_of(each)
        ordered.append((rounds[key], _promise_of(each), len(ordered), each))
        rounds[key] += 1
    return [each for *_, each in sorted(ordered, key=lambda place: place[:3])]


def _class_of(each: Perturbation) -> Hashable:
    if each.point is None or each.kind == "stale":  # each of them shows another past
        return each
    return each.kind, each.when, each.status, each.point.verb, each.point.resource, each.point.subresource


def _promise_of(each: Perturbation) -> int:
    key = (each.kind, each.status)
    return _PROMISE.index(key) if key in _PROMISE else len(_PROMISE)
