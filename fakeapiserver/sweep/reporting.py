"""The report of a sweep: text for people, JSON and JUnit XML for programs, and the file of results from which a sweep goes on."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.judging import Finding
from fakeapiserver.sweep.sweep import CaseResult, Learnt, Report

_SHOWN: Final = 8

# Returns the command that repeats a finding.
Repeat = Callable[[Finding], str]


class _Header(Struct):
    """The first line of a file of results: what was swept."""

    fakeapiserver_sweep: int
    target: str


def text_of(report: Report, again: Repeat) -> str:
    """The findings, each with its symptoms, its causes and how it is repeated."""
    lines: list[str] = []
    for number, finding in enumerate(report.findings, 1):
        lines += [f"{number}. {finding.title}", *_details(finding, again), ""]
    reached = sum(result.reached for result in report.results)
    left = report.planned - len(report.results)
    summary = (
        f"{_count(len(report.findings), 'finding')} in {_count(len(report.results), 'case')}, {report.seconds:.0f} s"
    )
    parts = [summary]
    if left:
        parts.append(f"{left} more were planned: the budget is used up")
    if reached < len(report.results):
        parts.append(f"{len(report.results) - reached} points didn't come again")
    unsure = [result for result in report.unsure if not result.repeats]
    if unsure:
        parts.append(f"{_count(len(unsure), 'case')} showed something once and not again: {unsure[0].perturbation.id}")
    errors = [result for result in report.unsure if result.error]
    if errors:
        parts.append(f"{_count(len(errors), 'case')} could not be run: {errors[0].error}")
    return "\n".join([*lines, "; ".join(parts)])


def document_of(report: Report, again: Repeat) -> dict[str, Any]:
    """The same as data."""
    return {
        "findings": [
            {
                "title": finding.title,
                "symptoms": [
                    {"kind": each.kind, "subject": each.subject, "text": each.text} for each in finding.symptoms
                ],
                "perturbations": list(finding.causes),
                "repeat": again(finding),
                "seconds": round(finding.seconds, 2),
            }
            for finding in report.findings
        ],
        "cases": len(report.results),
        "planned": report.planned,
        "notReached": [each.perturbation.id for each in report.results if not each.reached],
        "unsure": [{"perturbation": each.perturbation.id, "error": each.error} for each in report.unsure],
        "seconds": round(report.seconds, 2),
    }


def junit_of(report: Report, again: Repeat) -> bytes:
    """JUnit XML: a test for each case, which fails with the finding that it belongs to."""
    failed = {cause: finding for finding in report.findings for cause in finding.causes}
    suite = ElementTree.Element(
        "testsuite",
        name="sweep",
        tests=str(len(report.results)),
        failures=str(len(failed)),
        errors=str(sum(bool(each.error) for each in report.results)),
        time=f"{report.seconds:.2f}",
    )
    for result in report.results:
        name = result.perturbation.id
        test = ElementTree.SubElement(suite, "testcase", classname="sweep", name=name, time=f"{result.seconds:.2f}")
        if name in failed:
            failure = ElementTree.SubElement(test, "failure", message=failed[name].title)
            failure.text = "\n".join(_details(failed[name], again))
        elif result.error:
            ElementTree.SubElement(test, "error", message=result.error)
        elif not result.reached:
            ElementTree.SubElement(test, "skipped", message="the point of the perturbation didn't come")
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def plan_of(learnt: Learnt, jobs: int) -> str:
    """The cases, and how long they are going to take."""
    lines = [each.id for each in learnt.plan]
    return "\n".join([*lines, estimate(len(learnt.plan), learnt, jobs)])


def estimate(cases: int, learnt: Learnt, jobs: int) -> str:
    """`119 cases of about 3 s, 2 at a time: 3 min`"""
    at_once = min(jobs, os.cpu_count() or 1)
    seconds = cases * learnt.seconds / at_once
    total = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return f"{_count(cases, 'case')} of about {learnt.seconds:.0f} s, {jobs} at a time: {total}"


# ---------------------------------------------------------------- results


def fingerprint(target: Target) -> str:
    """A digest of the command and the steps."""
    words = [*target.operator.words, *target.scenario.words]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


class Results:
    """A file with a line for each case that was run, which a sweep that was interrupted goes on with."""

    def __init__(self, path: Path, target: Target) -> None:
        """Raises OSError, and ValueError if the file is of another operator or scenario."""
        self._path = path
        self.known: list[CaseResult] = []
        header = msgspec.json.encode(_Header(1, fingerprint(target)))
        if not path.exists():
            path.write_bytes(header + b"\n")
            return
        first, *lines = path.read_bytes().splitlines() or [b""]
        if first != header:
            raise ValueError(f"{path} has the results of another operator or scenario: name another file, or remove it")
        for line in lines:
            try:
                self.known.append(_result.decode(line))
            except msgspec.DecodeError:  # the line was being written when the sweep was killed
                break

    def add(self, result: CaseResult) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")


_result: Final = msgspec.json.Decoder(CaseResult)


def _details(finding: Finding, again: Repeat) -> list[str]:
    shown = finding.symptoms[:_SHOWN]
    more = len(finding.symptoms) - len(shown)
    causes = finding.causes[1:]
    return [
        f"   by: {finding.causes[0]}",
        *(f"   - {each.text}" for each in shown),
        *([f"   - and {more} more"] if more else []),
        *(
            [f"   also by: {'; '.join(causes[:3])}{f'; and {len(causes) - 3} more' if len(causes) > 3 else ''}"]
            if causes
            else []
        ),
        f"   again: {again(finding)}",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
