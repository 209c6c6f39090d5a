"""Puts the cases together that one bug of the operator causes.

1. Two symptoms are the same if they are of the same kind and about the same thing. Numbers in names and texts, the step, and which field of
   a condition or status differs don't count: `data-db-0` is like `data-db-1`.
2. Cases with the same set of symptoms are one finding, whatever was done to the operator.
3. Cases of one family of surprises are one finding if their gravest symptom is the same, or if a case has only symptoms, or has lost only
   objects, that the other has, too. The families: the operator's writes are cut off (crash, away, refuse, slow); its view is old (stale,
   unobserved, late, reordered, restart); another writer is faster (conflict, lease). Every other kind is a family of its own.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from fakeapiserver.sweep.judging import Comparison, Finding, Symptom, gravity
from fakeapiserver.sweep.timeline import Event

_FAMILIES: Final = (
    frozenset(("crash", "away", "refuse", "slow")),
    frozenset(("stale", "unobserved", "late", "reordered", "restart")),
    frozenset(("conflict", "lease")),
)
_STEP: Final = re.compile(r"^after step \d+, ")
_STATUS: Final = re.compile(r"( status\.[^.\[]+(\[[^\]]*\])?).*$")
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")

# The kind and subject of a symptom, without the parts that chance and the point of the surprise decide.
Essence = tuple[str, str]


class Evidence(Struct, frozen=True):
    """A case with symptoms. `kind` is that of the surprise, `surprise` a sentence about it."""

    cause: str
    kind: str
    symptoms: Sequence[Symptom]
    seconds: float = 0.0
    timeline: Sequence[Event] = ()
    comparisons: Sequence[Comparison] = ()
    surprise: str = ""

    @property
    def essences(self) -> frozenset[Essence]:
        """The symptoms as they are compared."""
        return frozenset(map(essence, self.symptoms))

    @property
    def gravest(self) -> Symptom:
        return min(self.symptoms, key=gravity)


def essence(symptom: Symptom) -> Essence:
    """`("missing", "persistentvolumeclaims default/data-db-#")` for a claim that is missing after the second step."""
    subject = _STATUS.sub(r"\1", _STEP.sub("", symptom.subject))
    return symptom.kind, _NUMBER.sub("#", subject)


def group(cases: Sequence[Evidence]) -> list[Finding]:
    """The findings, the gravest first. `cases` are the simplest first, and so are the causes of a finding, of which the first one shows
    its gravest symptom."""
    alike: dict[frozenset[Essence], list[Evidence]] = {}
    for each in cases:
        if each.symptoms:
            alike.setdefault(each.essences, []).append(each)
    findings: list[list[list[Evidence]]] = []
    for some in sorted(alike.values(), key=_importance):
        same = next((finding for finding in findings if _is_part(some, finding[0])), None)
        if same is None:
            findings.append([some])
        else:
            same.append(some)
    order = {id(each): number for number, each in enumerate(cases)}
    return [_finding(sorted(chain(*finding), key=lambda each: order[id(each)])) for finding in findings]


def _importance(alike: Sequence[Evidence]) -> tuple[int, int]:
    """Gravest first, and then those with the most symptoms, which the others are compared with."""
    return gravity(alike[0].gravest), -len(alike[0].essences)


def _is_part(some: Sequence[Evidence], graver: Sequence[Evidence]) -> bool:
    """Reports whether cases have the cause of others that are as grave or graver. Each sequence has the same symptoms throughout."""
    one, other = graver[0], some[0]
    # what the loss of one more object leads to says little
    lost = {each for each in other.essences if each[0] == "lost"}
    is_like = essence(one.gravest) == essence(other.gravest) or (lost or other.essences) <= one.essences
    return is_like and bool({_family(each.kind) for each in some} & {_family(each.kind) for each in graver})


def _family(kind: str) -> frozenset[str]:
    return next((family for family in _FAMILIES if kind in family), frozenset((kind,)))


def _finding(cases: Sequence[Evidence]) -> Finding:
    """The finding of cases, the simplest of which is the first."""
    gravest = min((each.gravest for each in cases), key=gravity)
    first = next(each for each in cases if essence(each.gravest) == essence(gravest))
    symptoms = sorted(first.symptoms, key=gravity)
    causes = [each.cause for each in (first, *(each for each in cases if each is not first))]
    return Finding(symptoms, causes, first.seconds, first.timeline, first.comparisons, first.surprise)
