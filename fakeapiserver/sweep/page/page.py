"""The report of a sweep or exploration as one HTML file that opens anywhere, without a network.

The page is made of the document alone. It needs no script to be read: that filters the table of cases and copies commands.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET

from fakeapiserver.sweep import kinds
from fakeapiserver.sweep.page import lanes
from fakeapiserver.sweep.page.html import Markup, joined, tag
from fakeapiserver.sweep.report.document import (
    CaseDocument,
    DifferenceDocument,
    Document,
    FindingDocument,
    Outcome,
    StatesDocument,
)

_HERE: Final = Path(__file__).parent
# Of the differences of a finding, the first are shown at once.
_SHOWN: Final = 12
_SIGNS: Final = {"missing": "−", "additional": "+", "changed": "±"}
_WORDS: Final = {"missing": "is missing", "additional": "exists, but should not", "changed": "is different"}
# The outcomes that are in the summary, with their words there.
_UNDECIDED: Final[Mapping[Outcome, str]] = {"not reached": "not reached", "unsure": "unsure", "error": "errors"}


def html_of(document: Document) -> str:
    """The page."""
    style, script = _asset("page.css"), _asset("page.js")
    title = f"{_counted(len(document.findings), 'finding')}: {document.command} of {document.operator}"
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the findings", href="#findings", class_="skip"),
        tag("header", *_summary(document)),
        tag("main", _findings(document), _cases(document)),
        tag("script", Markup(script)),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'


# ---------------------------------------------------------------- the summary


def _summary(document: Document) -> Iterator[Markup]:
    count = len(document.findings)
    verdict = f"{_counted(count, 'finding')} in {_counted(document.cases, 'case')}"
    yield tag("p", f"fakeapiserver {document.command}", class_="eyebrow")
    yield tag("h1", verdict, class_="bad" if count else "good")
    facts = [
        ("operator", tag("code", document.operator)),
        ("scenario", tag("code", document.scenario)),
        ("cases", _planned(document)),
        ("duration", _duration(document.seconds)),
        *((word, str(len(cases))) for outcome, word in _UNDECIDED.items() if (cases := document.of(outcome))),
    ]
    yield tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts))
    for note in document.notes:
        yield tag("p", note, class_="note")


def _planned(document: Document) -> str:
    return str(document.cases) if document.cases == document.planned else f"{document.cases} of {document.planned}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


# ---------------------------------------------------------------- findings


def _findings(document: Document) -> Markup:
    findings = document.findings
    zero = "the change" if document.command == "explore" else "the surprise"
    if not findings:
        return tag(
            "section", tag("h2", "Findings"), tag("p", "None: all cases end as the undisturbed run."), id="findings"
        )
    links = [
        tag("li", tag("a", each.title, href=f"#finding-{number}"), " ", _badge(each))
        for number, each in enumerate(findings, 1)
    ]
    return tag(
        "section",
        tag("h2", "Findings, the gravest first"),
        tag("nav", tag("ol", *links), aria_label="findings"),
        *(_finding(number, each, zero) for number, each in enumerate(findings, 1)),
        id="findings",
    )


def _badge(finding: FindingDocument) -> Markup:
    return tag("span", _counted(len(finding.causes), "case"), class_="badge")


def _finding(number: int, finding: FindingDocument, zero: str) -> Markup:
    """A finding. `zero`: what the times of its events count from."""
    return tag(
        "article",
        tag("h3", tag("span", f"{number}", class_="number"), finding.title),
        tag("p", finding.surprise, class_="surprise"),
        _symptoms(finding),
        tag("h4", f"What happened, in seconds since {zero}") if finding.timeline else "",
        lanes.figure(finding.timeline),
        *(_states(each) for each in finding.states),
        _causes(finding.causes),
        tag("h4", "Repeat it"),
        _command(finding.repeat),
        id=f"finding-{number}",
    )


def _symptoms(finding: FindingDocument) -> Markup:
    if len(finding.symptoms) < 2:
        return Markup()
    items = [
        tag("li", tag("span", each.kind, class_=f"badge {each.kind}"), " ", each.text) for each in finding.symptoms
    ]
    return joined(tag("h4", "What is wrong"), _list(items))


def _causes(causes: Sequence[str]) -> Markup:
    head = tag("h4", "Seen with" if len(causes) == 1 else f"Seen with {len(causes)} surprises, the simplest first")
    return joined(head, _list([tag("li", tag("code", each)) for each in causes]))


def _list(items: Sequence[Markup]) -> Markup:
    if len(items) <= _SHOWN:
        return tag("ul", *items)
    rest = tag("details", tag("summary", f"and {len(items) - _SHOWN} more"), tag("ul", *items[_SHOWN:]))
    return joined(tag("ul", *items[:_SHOWN]), rest)


def _command(command: str) -> Markup:
    button = tag("button", "Copy", type="button", class_="copy", hidden=True)
    return tag("div", tag("pre", tag("code", command), tabindex="0"), button, class_="command")


# ---------------------------------------------------------------- the difference of states


def _states(states: StatesDocument) -> Markup:
    by_object: dict[tuple[str, str], list[DifferenceDocument]] = {}
    for each in states.differences:
        by_object.setdefault((each.object, each.kind), []).append(each)
    objects = [_object(title, kind, differences) for (title, kind), differences in by_object.items()]
    rest = objects[_SHOWN:]
    more = tag("details", tag("summary", f"and {_counted(len(rest), 'more object')}"), *rest) if rest else ""
    legend = tag(
        "p",
        tag("span", f"− {states.wanted}", class_="wanted"),
        " ",
        tag("span", f"+ {states.actual}", class_="actual"),
        class_="legend",
    )
    return joined(tag("h4", f"The state {states.when}"), tag("div", legend, *objects[:_SHOWN], more, class_="diff"))


def _object(title: str, kind: str, differences: Sequence[DifferenceDocument]) -> Markup:
    name = kinds.spoken(title, kind).removeprefix("the ")
    change = differences[0].change
    head = tag("h5", f"{_SIGNS[change]} {name} ", tag("small", _WORDS[change]), class_=change)
    return joined(head, *(_difference(each) for each in differences))


def _difference(each: DifferenceDocument) -> Markup:
    values = [("wanted", "−", each.wanted), ("actual", "+", each.actual)]
    lines = [
        tag("code", f"{sign} {each.path}: {_text(value)}" if each.path else _content(sign, value), class_=name)
        for name, sign, value in values
        if value is not UNSET
    ]
    return tag("pre", *lines, tabindex="0")


def _content(sign: str, obj: Any) -> str:
    """The fields of an object, without those that its title says."""
    fields = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    return "\n".join(f"{sign} {name}: {_text(value)}" for name, value in fields.items())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- all cases


def _cases(document: Document) -> Markup:
    results = document.results
    filters = tag(
        "form",
        _choice("kind", sorted({each.kind for each in results})),
        _choice("outcome", sorted({each.outcome for each in results})),
        tag("label", "name ", tag("input", type="search", name="text")),
        tag("output", "", aria_live="polite"),
        class_="filters",
        hidden=True,
    )
    head = tag("tr", *(tag("th", word, scope="col") for word in ("case", "kind", "outcome", "seconds")))
    table = tag("table", tag("thead", head), tag("tbody", *map(_case, results)), id="cases")
    scroll = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="all cases")
    return tag("section", tag("h2", f"All {_counted(len(results), 'case')}"), filters, scroll)


def _choice(name: str, values: Sequence[str]) -> Markup:
    options = [tag("option", "all", value=""), *(tag("option", each, value=each) for each in values)]
    return tag("label", f"{name} ", tag("select", *options, name=name))


def _case(result: CaseDocument) -> Markup:
    outcome: str = result.outcome
    if result.finding:
        outcome = tag("a", f"finding {result.finding}", href=f"#finding-{result.finding}")
    message = tag("p", result.message, class_="message") if result.message else ""
    return tag(
        "tr",
        tag("td", tag("code", result.name), message),
        tag("td", result.kind),
        tag("td", outcome, class_=f"outcome {result.outcome.replace(' ', '-')}"),
        tag("td", f"{result.seconds:.1f}", class_="seconds"),
        data_kind=result.kind,
        data_outcome=result.outcome,
    )


# ---------------------------------------------------------------- parts of the file


@cache
def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The source of the content security policy that allows this text and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
