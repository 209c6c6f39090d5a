"""The report of a sweep or exploration as data: what JSON, JUnit XML and the page are made of. docs/sweeps.md describes it."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from fakeapiserver.sweep.judging import Comparison, Finding, Symptom
from fakeapiserver.sweep.timeline import Event

# Rises if a member is removed or gets another meaning.
VERSION: Final = 1

Outcome = Literal["passed", "finding", "not reached", "unsure", "error"]
# Returns the command that repeats a finding.
Repeat = Callable[[Finding], str]


class Swept(Struct, frozen=True):
    """The operator's command and the scenario, as a user named them, and how a finding is repeated."""

    operator: str
    scenario: str
    again: Repeat


class DifferenceDocument(Struct, rename="camel", omit_defaults=True):
    """A difference of an object. `change`: missing, additional, or changed, which has a `path`. `wanted` and `actual` are any values; one
    that is absent has no member."""

    object: str
    kind: str
    change: str
    path: str = ""
    wanted: Any = msgspec.UNSET
    actual: Any = msgspec.UNSET


class StatesDocument(Struct, rename="camel"):
    """Two states that should be equal, and what is different in them."""

    when: str
    wanted: str
    actual: str
    differences: Sequence[DifferenceDocument]


class FindingDocument(Struct, rename="camel"):
    """A finding. `surprise`: what was done to the operator, in a sentence. `causes`: the names of the cases, the simplest first,
    which the other members are about."""

    title: str
    surprise: str
    symptoms: Sequence[Symptom]
    causes: Sequence[str]
    repeat: str
    timeline: Sequence[Event]
    states: Sequence[StatesDocument]
    seconds: float


class CaseDocument(Struct, rename="camel"):
    """A case. `finding`: the number of its finding, from 1, 0 for none. `message`: the error."""

    name: str
    kind: str
    outcome: Outcome
    seconds: float
    finding: int = 0
    message: str = ""


class Document(Struct, rename="camel", kw_only=True):
    """The members that both commands have. `planned` is the number of cases, of which `cases` were run within the budget.

    `notes` are sentences about what was not looked at, for the page."""

    version: int = VERSION
    command: Literal["sweep", "explore"]
    operator: str
    scenario: str
    findings: Sequence[FindingDocument]
    cases: int
    planned: int
    seconds: float
    results: Sequence[CaseDocument]
    notes: Sequence[str] = field(default_factory=list)

    def of(self, outcome: Outcome) -> Sequence[CaseDocument]:
        """The cases with this outcome."""
        return [each for each in self.results if each.outcome == outcome]


class SweepDocument(Document, kw_only=True):
    """The report of a sweep. `notReached` and `unsure` are names of cases."""

    not_reached: Sequence[str]
    unsure: Sequence[str]


class ExploreDocument(Document, kw_only=True):
    """The report of an exploration. `fields` are those of the schema; the changes of those `withoutEffect` had none."""

    without_effect: Sequence[str]
    fields: Sequence[str]
    changed_fields: Sequence[str]
    states: int
    refused: int
    without_way_back: Sequence[str]
    unsure: Sequence[str]


def json_of(document: Document) -> str:
    """JSON with indented lines."""
    return json.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=False)


def finding_of(finding: Finding, surprise: str, again: Repeat) -> FindingDocument:
    """A finding as data."""
    return FindingDocument(
        finding.title,
        surprise,
        list(finding.symptoms),
        list(finding.causes),
        again(finding),
        list(finding.timeline),
        [_states(each) for each in finding.comparisons],
        round(finding.seconds, 2),
    )


def _states(comparison: Comparison) -> StatesDocument:
    found = [
        DifferenceDocument(each.title, each.kind, each.change, each.path, _value(each.wanted), _value(each.actual))
        for each in comparison.differences
    ]
    return StatesDocument(comparison.when, comparison.wanted, comparison.actual, found)


def _value(text: str) -> Any:
    return json.loads(text) if text else msgspec.UNSET
