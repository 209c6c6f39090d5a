"""The page of a report: one file without external references, in which everything is escaped."""

import re
from html.parser import HTMLParser
from typing import Any, Literal

import msgspec
import pytest

from fakeapiserver.sweep.judging import Symptom
from fakeapiserver.sweep.page import page
from fakeapiserver.sweep.report.document import (
    CaseDocument,
    DifferenceDocument,
    Document,
    FindingDocument,
    StatesDocument,
    SweepDocument,
)
from fakeapiserver.sweep.timeline import Event

HOSTILE = "<script>alert('x')</script>\"'&\x00\x1b[31m\u202e%0A\n]]>--><img src=http://evil.example/x onerror=alert(1)>"
EVENTS = [
    Event(-2.5, "step", "step 1: apply Database db", 0.5),
    Event(-0.5, "request", "create secrets a/db 201", times=3),
    Event(0.0, "request", "create configmaps a/db 504 Timeout", is_struck=True, is_refused=True),
    Event(0.0, "surprise", "crash after create configmaps a/db"),
    Event(0.1, "operator", "the operator is killed"),
    Event(0.2, "operator", "the operator is started again"),
    Event(1.2, "request", "create configmaps a/db 409 AlreadyExists", is_refused=True),
]


def report(
    text: str = "plain", events: list[Event] = EVENTS, outcomes: tuple[str, ...] = ("finding", "passed")
) -> Document:
    finding = FindingDocument(
        title=f"the ConfigMap {text} is missing",
        surprise=f"The operator was killed: {text}.",
        symptoms=[Symptom("missing", text, f"missing {text}"), Symptom("changed", text, f"changed {text}")],
        causes=[f"crash {text}"],
        repeat=f"fakeapiserver sweep --only='{text}'",
        timeline=[*events, Event(1.3, "request", text)] if events else [],
        states=[
            StatesDocument(
                f"after {text}",
                "undisturbed",
                "with the surprise",
                [
                    DifferenceDocument(f"configmaps {text}", "ConfigMap", "missing", wanted={"data": {text: text}}),
                    DifferenceDocument("pods a", "Pod", "changed", f"spec.{text}", wanted=text, actual=[text]),
                    DifferenceDocument("pods a", "Pod", "changed", "spec.new", actual=None),
                ],
            )
        ],
        seconds=2.5,
    )  # fmt: skip
    results = [
        CaseDocument(f"{text} {number}", "crash", outcome, 1.5, int(outcome == "finding"), text * (outcome == "error"))
        for number, outcome in enumerate(outcomes)
    ]
    return SweepDocument(
        command="sweep",
        operator=f"./manager {text}",
        scenario=f"{text}.yaml",
        findings=[finding] if "finding" in outcomes else [],
        cases=len(results),
        planned=len(results) + 1,
        seconds=75.0,
        results=results,
        notes=[f"note {text}"],
        not_reached=[],
        unsure=[],
    )


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def count(self, name: str) -> int:
        return sum(tag == name for tag, _ in self.elements)


def parsed(document: Document) -> Parsed:
    return Parsed(page.html_of(document))


@pytest.mark.parametrize("text", ["plain", HOSTILE, "x" * 5000, "", "ä€🙂"])
def test_nothing_is_loaded_from_elsewhere_and_everything_is_escaped(text: str) -> None:
    found, usual = parsed(report(text)), parsed(report())
    assert not found.open
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in usual.elements]
    names = {name for _, attributes in found.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "style", "srcset", "action"})
    links = [attributes["href"] for _, attributes in found.elements if "href" in attributes]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert "url(" not in page.html_of(report(text))


def test_the_policy_allows_only_the_page_s_own_style_and_script() -> None:
    [policy] = [
        attributes["content"] for _, attributes in parsed(report()).elements if "http-equiv" in attributes
    ]  # fmt: skip
    assert policy is not None
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[\w+/]+='; script-src 'sha256-[\w+/]+='", policy)


def test_what_can_not_be_seen_is_written_out() -> None:
    text = "".join(parsed(report(HOSTILE)).text)
    assert "\\x00\\x1b[31m\\u202e%0A" in text
    assert not {"\x00", "\x1b", "\u202e"} & {*text}


def test_the_links_lead_somewhere() -> None:
    elements = parsed(report(outcomes=("finding", "error", "unsure", "not reached"))).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len({*ids})
    assert {attributes["href"] for _, attributes in elements if "href" in attributes} <= {f"#{name}" for name in ids}


@pytest.mark.parametrize(
    "part",
    [
        "1 finding in 2 cases",
        "2 of 3",
        "1 min 15 s",
        "The operator was killed: plain.",
        "create configmaps a/db 504 Timeout",
        "create secrets a/db 201 (3 times)",
        "1.0 s later",
        "− ConfigMap plain ",
        '− data: {"plain": "plain"}',
        '− spec.plain: "plain"',
        '+ spec.plain: ["plain"]',
        "+ spec.new: null",
        "fakeapiserver sweep --only='plain'",
    ],
)
def test_the_page_has_it(part: str) -> None:
    assert part in parsed(report()).text


@pytest.mark.parametrize(
    ("outcomes", "rows"), [((), 0), (("passed",), 1), (("finding", "error", "unsure", "not reached", "passed"), 5)]
)
def test_all_cases_are_in_the_table(outcomes: tuple[str, ...], rows: int) -> None:
    found = parsed(report(outcomes=outcomes))
    cases = [attributes["data-outcome"] for tag, attributes in found.elements if "data-outcome" in attributes]
    assert (cases, len(cases)) == ([*outcomes], rows)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="none"),
        pytest.param([Event(0.0, "surprise", "x")], id="one moment"),
        pytest.param([Event(0.0, "step", "step 1: x", 0.0)], id="a step without a duration"),
        pytest.param([Event(0.0, "request", "x"), Event(5000.0, "request", "y")], id="an hour"),
    ],
)
def test_time_lines_of_any_length(events: list[Event]) -> None:
    found = parsed(report(events=events))
    assert found.count("svg") == bool(events)
    for tag, attributes in found.elements:
        if tag == "rect":
            assert 0 <= float(attributes["x"] or "") <= 1000
            assert float(attributes["width"] or "") > 0


@pytest.mark.parametrize(("command", "words"), [("sweep", "since the surprise"), ("explore", "since the change")])
def test_times_count_from(command: Literal["sweep", "explore"], words: str) -> None:
    document = report()
    document.command = command
    assert f"What happened, in seconds {words}" in parsed(document).text


def test_events_far_from_the_surprise_are_folded() -> None:
    events = [Event(float(number), "request", f"write {number}") for number in range(-30, 60)]
    found = parsed(report(events=events))
    assert {"22 earlier events", "45 later events", "write -30", "write 59"} <= {*found.text}
    assert found.count("rect") == 4 + 24  # the lanes, and a mark for each event that is not folded


def test_the_page_is_a_function_of_the_document() -> None:
    document = report()
    again = msgspec.json.decode(msgspec.json.encode(document), type=SweepDocument)
    assert page.html_of(document) == page.html_of(again)
