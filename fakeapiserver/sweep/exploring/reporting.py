"""The report of an exploration: text for people, JSON and JUnit XML for programs."""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from fakeapiserver.sweep import differences
from fakeapiserver.sweep.exploring.explore import Case, Exploration, Learnt, id_of
from fakeapiserver.sweep.reporting import Repeat, counted, details, estimate


def text_of(report: Exploration, again: Repeat) -> str:
    """The findings, the fields without effect, and what was covered."""
    lines: list[str] = []
    for number, finding in enumerate(report.findings, 1):
        lines += [f"{number}. {finding.title}", *details(finding, again), ""]
    if report.without_effect:
        lines += [f"fields without any effect: {', '.join(report.without_effect)}", ""]
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


def document_of(report: Exploration, again: Repeat) -> dict[str, Any]:
    """The same as data."""
    return {
        "findings": [
            {
                "title": finding.title,
                "symptoms": [
                    {"kind": each.kind, "subject": each.subject, "text": each.text} for each in finding.symptoms
                ],
                "changes": list(finding.causes),
                "repeat": again(finding),
                "timeline": msgspec.to_builtins(finding.timeline),
                "states": [differences.document_of(each) for each in finding.comparisons],
            }
            for finding in report.findings
        ],
        "withoutEffect": list(report.without_effect),
        "fields": list(report.fields),
        "changedFields": list(report.tried),
        "states": report.states,
        "cases": len(report.results),
        "planned": report.planned,
        "refused": report.refused,
        "withoutWayBack": [each.id for each in report.results if not each.way_back],
        "unsure": [{"change": each.id, "error": each.error} for each in report.unsure],
        "seconds": round(report.seconds, 2),
    }


def junit_of(report: Exploration, again: Repeat) -> bytes:
    """JUnit XML: a test for each case."""
    failed = {cause: finding for finding in report.findings for cause in finding.causes}
    suite = ElementTree.Element(
        "testsuite", name="explore", tests=str(len(report.results)), failures=str(len(failed)),
        errors=str(sum(bool(each.error) for each in report.results)), time=f"{report.seconds:.2f}",
    )  # fmt: skip
    for result in report.results:
        test = ElementTree.SubElement(
            suite, "testcase", classname="explore", name=result.id, time=f"{result.seconds:.2f}"
        )
        if result.id in failed:
            failure = ElementTree.SubElement(test, "failure", message=failed[result.id].title)
            failure.text = "\n".join(each.text for each in result.symptoms)
        elif result.error:
            ElementTree.SubElement(test, "error", message=result.error)
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def plan_of(learnt: Learnt, cases: Sequence[Case], jobs: int) -> str:
    """The cases, and how long they are going to take."""
    return "\n".join([*map(id_of, cases), estimate(len(cases), learnt.seconds, jobs)])
