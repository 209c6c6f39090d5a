"""Findings: the symptoms of cases, gathered by the field that causes them."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from fakeapiserver.sweep.judging import Comparison, Finding, Symptom, gravity
from fakeapiserver.sweep.timeline import Event


class SpecResult(Struct):
    """A case: the object was created with changes, and was changed to that and back. `way_back` is False if the server refused to go back.

    - `fields`: the paths in the schema of the changed fields.
    - `effects`: a digest of the state, "" if nothing but the field itself changed.
    - `refused`: writes of the operator that the API server refused as invalid.
    - `repeats`: the symptoms were seen a second time.
    - `is_planned`: False for a case that follows from the results of others."""

    id: str
    fields: Sequence[str]
    symptoms: Sequence[Symptom]
    seconds: float
    effects: str = ""
    way_back: bool = True
    repeats: bool = True
    error: str = ""
    refused: Sequence[str] = ()
    comparisons: Sequence[Comparison] = ()
    timeline: Sequence[Event] = ()
    is_planned: bool = True


Subjects = frozenset[tuple[str, str]]


def subjects_of(symptoms: Iterable[Symptom]) -> Subjects:
    """The kinds of the symptoms, with the objects and fields that they are about."""
    return frozenset((each.kind, each.subject) for each in symptoms)


def grouped(results: Sequence[SpecResult]) -> list[Finding]:
    """The findings, the gravest first. A finding is about one field, or about fields of one object that have the same
    symptoms; a case of two fields is one of its own only if neither field alone has its symptoms. A whole object (`spec = {}`) comes after
    the fields within it."""
    wrong = {result.fields[0] for result in results if result.symptoms and len(result.fields) == 1}
    findings: list[tuple[set[str], set[tuple[str, str]], Finding]] = []
    for result in sorted(
        results, key=lambda each: (len(each.fields), _is_around(each.fields, wrong), "then" in each.id)
    ):
        if not result.symptoms:
            continue
        subjects = subjects_of(result.symptoms)
        causes = [each for each in findings if _is_same(each[0], each[1], result.fields, subjects)]
        known = {subject for _, known, _ in causes for subject in known}
        if _is_around(result.fields, set[str]().union(*(fields for fields, _, _ in causes))):
            abouts = {about for _, about in known}
            new = [each for each in result.symptoms if each.subject not in abouts]
        else:
            new = [each for each in result.symptoms if (each.kind, each.subject) not in known]
            if new and causes and len(result.fields) == 1:
                _, of_finding, finding = causes[0]
                of_finding |= subjects
                finding.symptoms = [*dict.fromkeys((*finding.symptoms, *result.symptoms))]
                new = []
        if not new:  # all of it is known
            causes[0][2].causes.append(result.id)
            continue
        finding = Finding(new, [result.id], result.seconds, result.timeline, result.comparisons)
        findings.append((set(result.fields), set(subjects_of(new)), finding))
    return sorted((finding for _, _, finding in findings), key=lambda finding: gravity(finding.symptoms[0]))


def _is_same(fields: set[str], known: set[tuple[str, str]], others: Sequence[str], subjects: Subjects) -> bool:
    """Whether a finding about `fields` with the symptoms `known` is the cause of symptoms of other fields."""
    if not fields:  # it shows without any change
        return subjects <= known
    if len(others) == 1 and len(fields) == 1:
        [field], [other] = fields, others
        if is_within(field, other):
            return bool({about for _, about in known} & {about for _, about in subjects})
        return field == other or (_object_of(field) == _object_of(other) and subjects <= known)
    return fields <= set(others) and bool(subjects & known)


def _is_around(fields: Sequence[str], others: Iterable[str]) -> bool:
    """Reports whether the only field is an object that has one of the others within it."""
    return len(fields) == 1 and any(is_within(other, fields[0]) for other in others)


def is_within(field: str, other: str) -> bool:
    """Reports whether a field is within another one: `spec.users[].name` is within `spec.users`."""
    return field.startswith((f"{other}.", f"{other}["))


def _object_of(field: str) -> str:
    """The field of `spec` to which a field belongs: `spec.tls` for `spec.tls.secret.name`."""
    return ".".join(field.replace("[]", "").split(".")[:2])
