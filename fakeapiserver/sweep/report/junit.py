"""JUnit XML: a test for each case, which fails with the finding that it belongs to."""

from collections.abc import Sequence
from xml.etree import ElementTree

from fakeapiserver.sweep.report.document import CaseDocument, Document


def junit_of(document: Document, details: Sequence[str]) -> bytes:
    """The document as a test suite. `details`: the text about each finding."""
    results = document.results
    suite = ElementTree.Element(
        "testsuite",
        name=document.command,
        tests=str(len(results)),
        failures=str(len(document.of("finding"))),
        errors=str(len(document.of("error"))),
        skipped=str(len(document.of("not reached"))),
        time=f"{document.seconds:.2f}",
    )
    counts: dict[str, int] = {}
    for result in results:
        counts[result.name] = counts.get(result.name, 0) + 1
        again = f" #{counts[result.name]}" if counts[result.name] > 1 else ""
        test = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{document.command}.{result.kind}",
            name=_plain(result.name + again),
            time=f"{result.seconds:.2f}",
        )
        _add_outcome(test, document, result, details)
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def _add_outcome(test: ElementTree.Element, document: Document, result: CaseDocument, details: Sequence[str]) -> None:
    match result.outcome:
        case "finding":
            title = document.findings[result.finding - 1].title
            failure = ElementTree.SubElement(test, "failure", message=_plain(title))
            failure.text = _plain(details[result.finding - 1])
        case "error":
            ElementTree.SubElement(test, "error", message=_plain(result.message))
        case "not reached":
            ElementTree.SubElement(test, "skipped", message="the point of the perturbation didn't come")
        case "unsure":
            ElementTree.SubElement(test, "system-out").text = "symptoms were seen once, and not again"


def _plain(text: str) -> str:
    """The text without characters that XML can't have."""
    return "".join(
        each
        if each in "\t\n" or (each >= " " and not "\ud800" <= each <= "\udfff" and each not in "\ufffe\uffff")
        else "?"
        for each in text
    )
