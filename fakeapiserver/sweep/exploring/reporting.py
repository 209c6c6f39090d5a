"""The report of an exploration as text and as data."""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.sweep.exploring.cases import NOTHING, Case, id_of
from fakeapiserver.sweep.exploring.explore import Exploration, Learnt
from fakeapiserver.sweep.exploring.findings import SpecResult
from fakeapiserver.sweep.report import document
from fakeapiserver.sweep.report.document import CaseDocument, ExploreDocument, Outcome, Repeat, Swept
from fakeapiserver.sweep.reporting import counted, details, estimate

# Characters of a server's words, and fields of a list.
_SHOWN: Final = 200
_NAMED: Final = 12


def text_of(report: Exploration, again: Repeat) -> str:
    """The findings, the fields without effect, and what was covered."""
    lines: list[str] = []
    for number, finding in enumerate(report.findings, 1):
        lines += [f"{number}. {finding.title}", *details(finding, again), ""]
    if report.without_effect:
        lines += [f"fields without any effect: {', '.join(report.without_effect)}", ""]
    if refused := _refused(report):
        lines += [
            "specs that the operator doesn't carry out, since the API server refuses what it writes:",
            *refused,
            "",
        ]
    if report.not_reached:
        lines += [f"fields that weren't changed, since {why}: {names}" for why, names in _not_reached(report)] + [""]
    parts = [
        f"{counted(len(report.findings), 'finding')} in {counted(len(report.results), 'case')}, {report.seconds:.0f} s",
        f"{len(report.tried)} of {counted(len(report.fields), 'field')} changed, {counted(report.states, 'different state')}",
    ]
    left = report.planned - len(report.results)
    if left:
        parts.append(f"{left} more were planned: the budget is used up")
    if report.refused:
        parts.append(f"{counted(report.refused, 'change')} refused by the server")
    without_way_back = sum(not result.way_back for result in report.results)
    if without_way_back:
        parts.append(f"{counted(without_way_back, 'case')} without a way back")
    parts += [f"not sure: {each.id}{f' ({each.error})' if each.error else ''}" for each in report.unsure[:3]]
    return "\n".join([*lines, "; ".join(parts)])


def _refused(report: Exploration) -> list[str]:
    """A line for each field, with its first case."""
    first = {result.fields[-1]: result for result in reversed(report.results) if result.refused and result.fields}
    return [f"  {result.id}: {result.refused[0][:_SHOWN]}" for result in [*reversed(first.values())]]


def _not_reached(report: Exploration) -> list[tuple[str, str]]:
    """The fields for each reason, of which only the first are named."""
    by_reason: dict[str, list[str]] = {}
    for field, reason in report.not_reached.items():
        by_reason.setdefault(reason, []).append(field)
    return [
        (reason, ", ".join(fields[:_NAMED]) + (f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else ""))
        for reason, fields in by_reason.items()
    ]


def document_of(report: Exploration, swept: Swept) -> ExploreDocument:
    """The same as data."""
    finding_of_case = {cause: number for number, each in enumerate(report.findings, 1) for cause in each.causes}
    left = report.planned - len(report.results)
    notes = [
        f"{len(report.tried)} of {counted(len(report.fields), 'field')} of the schema were changed, which led to "
        f"{counted(report.states, 'different state')}.",
        *(
            [f"Fields whose changes had no effect: {', '.join(report.without_effect)}."]
            if report.without_effect
            else []
        ),
        *(f"Fields that weren't changed, since {why}: {names}." for why, names in _not_reached(report)),
        *(f"The operator's writes are refused with {line.strip()}" for line in _refused(report)),
        *([f"{counted(left, 'case')} of those planned were not run: the budget was used up."] if left else []),
    ]
    return ExploreDocument(
        command="explore",
        operator=swept.operator,
        scenario=swept.scenario,
        findings=[document.finding_of(each, _surprise(each.causes[0]), swept.again) for each in report.findings],
        cases=len(report.results),
        planned=report.planned,
        seconds=round(report.seconds, 2),
        results=[_case(each, finding_of_case.get(each.id, 0)) for each in report.results],
        notes=notes,
        without_effect=report.without_effect,
        fields=list(report.fields),
        changed_fields=report.tried,
        states=report.states,
        refused=report.refused,
        without_way_back=[each.id for each in report.results if not each.way_back],
        unsure=[each.id for each in report.unsure],
    )


def _surprise(name: str) -> str:
    if name == NOTHING:
        return "The operator was started again, and nothing was changed."
    return f"The custom resource was created with {name}; it was also changed to that, and changed back."


def _case(result: SpecResult, finding: int) -> CaseDocument:
    outcome: Outcome = "finding" if finding else "passed"
    if result.error:
        outcome = "error"
    elif not result.repeats:
        outcome = "unsure"
    kind = {0: "no change", 1: "one field"}.get(len(result.fields), "two fields")
    return CaseDocument(result.id, kind, outcome, round(result.seconds, 2), finding, result.error)


def plan_of(learnt: Learnt, cases: Sequence[Case], jobs: int) -> str:
    """The cases, and how long they are going to take."""
    return "\n".join([*map(id_of, cases), estimate(len(cases), learnt.seconds, jobs)])
