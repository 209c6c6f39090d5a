"""The report of a sweep as text and as data, and the file of results from which a sweep goes on."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.exploring.findings import SpecResult
from fakeapiserver.sweep.judging import Finding
from fakeapiserver.sweep.report import differences, document
from fakeapiserver.sweep.report.document import CaseDocument, Outcome, Repeat, SweepDocument, Swept
from fakeapiserver.sweep.sweep import CaseResult, Learnt, Report
from fakeapiserver.sweep.timeline import shown_lines

_SHOWN: Final = 8


class _Header(Struct):
    """The first line of a file of results: what was swept."""

    fakeapiserver_sweep: int
    target: str


def text_of(report: Report, again: Repeat) -> str:
    """The findings, each with its symptoms, its causes and how it is repeated."""
    lines: list[str] = []
    for number, finding in enumerate(report.findings, 1):
        lines += [f"{number}. {finding.title}", *details(finding, again), ""]
    reached = sum(result.reached for result in report.results)
    left = report.planned - len(report.results)
    summary = (
        f"{counted(len(report.findings), 'finding')} in {counted(len(report.results), 'case')}, {report.seconds:.0f} s"
    )
    parts = [summary]
    if left:
        parts.append(f"{left} more were planned: the budget is used up")
    if reached < len(report.results):
        parts.append(f"{len(report.results) - reached} points didn't come again")
    unsure = [result for result in report.unsure if not result.repeats]
    if unsure:
        parts.append(f"{counted(len(unsure), 'case')} showed something once and not again: {unsure[0].perturbation.id}")
    errors = [result for result in report.unsure if result.error]
    if errors:
        parts.append(f"{counted(len(errors), 'case')} could not be run: {errors[0].error}")
    return "\n".join([*lines, "; ".join(parts), *_uncertain(report)])


def _uncertain(report: Report) -> list[str]:
    """The note about objects that aren't compared."""
    titles = [*report.uncertain]
    if not titles:
        return []
    more = f", and {len(titles) - _SHOWN} more" if len(titles) > _SHOWN else ""
    verb = "differs" if len(titles) == 1 else "differ"
    shown = ", ".join(titles[:_SHOWN])
    return [f"{counted(len(titles), 'object')} {verb} between undisturbed runs, and can't be judged: {shown}{more}."]


def document_of(report: Report, swept: Swept) -> SweepDocument:
    """The same as data."""
    finding_of_case = {cause: number for number, each in enumerate(report.findings, 1) for cause in each.causes}
    left = report.planned - len(report.results)
    return SweepDocument(
        command="sweep",
        operator=swept.operator,
        scenario=swept.scenario,
        findings=[document.finding_of(each, each.surprise, swept.again) for each in report.findings],
        cases=len(report.results),
        planned=report.planned,
        seconds=round(report.seconds, 2),
        results=[_case(each, finding_of_case.get(each.perturbation.id, 0)) for each in report.results],
        notes=[
            *([f"{counted(left, 'case')} of those planned were not run: the budget was used up."] if left else []),
            *_uncertain(report),
        ],
        not_reached=[each.perturbation.id for each in report.results if not each.reached],
        unsure=[each.perturbation.id for each in report.unsure],
    )


def _case(result: CaseResult, finding: int) -> CaseDocument:
    outcome: Outcome = "finding" if finding else "passed" if result.reached else "not reached"
    if result.error:
        outcome = "error"
    elif not result.repeats:
        outcome = "unsure"
    name, kind = result.perturbation.id, result.perturbation.kind
    return CaseDocument(name, kind, outcome, round(result.seconds, 2), finding, result.error)


def details_of(findings: Sequence[Finding], again: Repeat) -> list[str]:
    """The text about each finding."""
    return ["\n".join(details(each, again)) for each in findings]


def plan_of(learnt: Learnt, jobs: int) -> str:
    """The cases, and how long they are going to take."""
    lines = [each.id for each in learnt.plan]
    return "\n".join([*lines, estimate(len(learnt.plan), learnt.seconds, jobs)])


def estimate(cases: int, seconds: float, jobs: int) -> str:
    """`119 cases of about 3 s, 2 at a time: 3 min`. `seconds` is the duration of a case."""
    whole = cases * seconds / min(jobs, os.cpu_count() or 1)
    total = f"{whole / 60:.0f} min" if whole >= 90 else f"{whole:.0f} s"
    return f"{counted(cases, 'case')} of about {seconds:.0f} s, {jobs} at a time: {total}"


# ---------------------------------------------------------------- results


def fingerprint(target: Target) -> str:
    """A digest of the command and the steps."""
    words = [*target.operator.words, *target.scenario.words]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


T = TypeVar("T", CaseResult, SpecResult)


class Results(Generic[T]):
    """A file with a line for each case that was run, which a sweep or exploration that was interrupted goes on with."""

    def __init__(self, path: Path, target: Target, of: type[T]) -> None:
        """Raises OSError, and ValueError if the file is of another operator or scenario."""
        self._path: Path = path
        self.known: list[T] = []
        decoder = msgspec.json.Decoder(of)
        header = msgspec.json.encode(_Header(1, fingerprint(target)))
        if not path.exists():
            path.write_bytes(header + b"\n")
            return
        first, *lines = path.read_bytes().splitlines() or [b""]
        if first != header:
            raise ValueError(f"{path} has the results of another operator or scenario: name another file, or remove it")
        for line in lines:
            try:
                self.known.append(decoder.decode(line))
            except msgspec.DecodeError:  # the line was being written when the sweep was killed
                break

    def add(self, result: T) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")


def details(finding: Finding, again: Repeat) -> list[str]:
    """The lines about a finding below its title."""
    shown = finding.symptoms[:_SHOWN]
    more = len(finding.symptoms) - len(shown)
    causes = finding.causes[1:]
    return [
        f"   by: {finding.causes[0]}",
        *(f"   - {each.text}" for each in shown if len(finding.symptoms) > 1),
        *([f"   - and {more} more"] if more else []),
        *(
            [f"   also by: {'; '.join(causes[:3])}{f'; and {len(causes) - 3} more' if len(causes) > 3 else ''}"]
            if causes
            else []
        ),
        *shown_lines(finding.timeline),
        *differences.lines_of(finding.comparisons),
        f"   again: {again(finding)}",
    ]


def counted(number: int, noun: str) -> str:
    """`3 cases`"""
    return f"{number} {noun}{'' if number == 1 else 's'}"
