"""Cases that one bug causes are one finding, with a title, an order and a first cause that a person would choose."""

import pytest

from fakeapiserver.sweep.grouping import Evidence, group
from fakeapiserver.sweep.judging import Symptom, SymptomKind, gravity
from fakeapiserver.sweep.timeline import Event

CLAIM = Symptom("lost", "persistentvolumeclaims a/data-db-0", "the PersistentVolumeClaim a/data-db-0 is deleted")
MISSING = Symptom("missing", "configmaps a/db", "the ConfigMap a/db is missing")
STATUS = Symptom(
    "changed", "databases.example.com a/db status.size", "the Database a/db has status.size 3 instead of 1"
)
SIZE = Symptom("changed", "configmaps a/db data.size", 'the ConfigMap a/db has data.size "3" instead of "1"')
RESTLESS = Symptom("restless", "the operator doesn't come to rest", "the operator doesn't come to rest: still moving")


def symptom(kind: SymptomKind, subject: str) -> Symptom:
    return Symptom(kind, subject, subject)


@pytest.mark.parametrize(
    ("cases", "causes"),
    [
        pytest.param([("crash 1", []), ("crash 2", [])], [], id="cases without symptoms are no findings"),
        pytest.param([("crash 1", [MISSING]), ("late", [MISSING])], [["crash 1", "late"]], id="the same symptoms"),
        pytest.param(
            [("crash 1", [MISSING]), ("crash 2", [MISSING, STATUS]), ("refuse 1", [STATUS])],
            [["crash 1", "crash 2", "refuse 1"]],
            id="one family, and one set is a part of another",
        ),
        pytest.param(
            [("crash 1", [STATUS]), ("crash 2", [MISSING, STATUS])],
            [["crash 2", "crash 1"]],
            id="the first cause shows the gravest symptom, although another one is simpler",
        ),
        pytest.param(
            [("crash 1", [MISSING, SIZE]), ("refuse 2", [MISSING, STATUS])],
            [["crash 1", "refuse 2"]],
            id="one family and the same gravest symptom",
        ),
        pytest.param(
            [("crash 1", [MISSING, SIZE]), ("stale 2", [MISSING, STATUS])],
            [["crash 1"], ["stale 2"]],
            id="another family and other symptoms",
        ),
        pytest.param(
            [("crash 1", [STATUS, MISSING]), ("crash 2", [STATUS, CLAIM]), ("crash 3", [STATUS])],
            [["crash 2", "crash 3"], ["crash 1"]],
            id="a symptom in common doesn't join two bugs",
        ),
        pytest.param(
            [("stale 1", [symptom("lost", "secrets a/db"), CLAIM]), ("stale 2", [symptom("lost", "secrets a/db"), STATUS])],
            [["stale 1", "stale 2"]],
            id="a part of the lost objects, with other consequences",
        ),
        pytest.param(
            [("crash 1", [MISSING, SIZE]), ("crash 2", [SIZE]), ("late 3", [SIZE])],
            [["crash 1", "crash 2", "late 3"]],
            id="cases with the same symptoms stay together",
        ),
        pytest.param(
            [("crash 1", [symptom("additional", "secrets a/db-*1")]), ("crash 2", [symptom("additional", "secrets a/db-*2")])],
            [["crash 1", "crash 2"]],
            id="generated names",
        ),
        pytest.param(
            [("crash 1", [symptom("missing", "after step 2, pods a/db-0")]), ("crash 2", [symptom("missing", "pods a/db-1")])],
            [["crash 1", "crash 2"]],
            id="steps and ordinals",
        ),
        pytest.param(
            [("crash 1", [symptom("panic", f"panic: nil at {place}")]) for place in ("0xc000123", "0xc000fff")],
            [["crash 1", "crash 1"]],
            id="addresses in the traces of a crash",
        ),
        pytest.param(
            [
                ("late 1", [symptom("changed", "pods a/db status.conditions[type=Ready].status")]),
                ("restart 1", [symptom("changed", "pods a/db status.conditions[type=Ready].reason")]),
            ],
            [["late 1", "restart 1"]],
            id="fields of one condition",
        ),
        pytest.param(
            [("lease 1", [RESTLESS]), ("webhook 1", [SIZE]), ("crash 1", [CLAIM])],
            [["crash 1"], ["webhook 1"], ["lease 1"]],
            id="the gravest finding is the first",
        ),
    ],
)  # fmt: skip
def test_findings(cases: list[tuple[str, list[Symptom]]], causes: list[list[str]]) -> None:
    evidence = [Evidence(cause, cause.partition(" ")[0], symptoms) for cause, symptoms in cases]
    assert [finding.causes for finding in group(evidence)] == causes


def test_a_finding_shows_its_first_cause() -> None:
    cases = [
        Evidence("crash 1", "crash", [STATUS], 1.0, [Event(0.0, "request", "one")]),
        Evidence("crash 2", "crash", [STATUS, MISSING], 2.0, [Event(0.0, "request", "two")]),
    ]
    [finding] = group(cases)
    assert (finding.title, finding.seconds) == (f"{MISSING.text} (and 1 more)", 2.0)
    assert [each.text for each in finding.timeline] == ["two"]


def test_lost_data_is_the_gravest() -> None:
    symptoms = [
        CLAIM,
        symptom("panic", "panic: nil"),
        symptom("invariant", "one primary"),
        symptom("lost", "pods a/db"),
        MISSING,
        symptom("additional", "pods a/db"),
        symptom("step", "step 1 fails"),
        SIZE,
        RESTLESS,
        STATUS,
    ]
    lightest_first = symptoms[::-1]
    assert sorted(lightest_first, key=gravity) == symptoms
