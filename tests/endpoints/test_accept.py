"""Tests how paths without resources read an Accept header, as a real kube-apiserver 1.36.3 does."""

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.endpoints.negotiation import accept
from fakeapiserver.endpoints.negotiation import media_types as negotiation
from fakeapiserver.endpoints.negotiation.media_types import JSON, PROTOBUF, YAML

DISCOVERY = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("application/json", ["application/json"]),
        ("*", ["*/*"]),
        ("a/b;q=0.5, c/d", ["c/d", "a/b"]),
        ("*/*, application/*, application/json", ["application/json", "application/*", "*/*"]),
        ("garbage, a/b/c, a/b/, ;;", ["a/b"]),
        ("", []),
    ],
)
def test_clauses_best_first(header: str, expected: list[str]) -> None:
    assert [f"{clause.type}/{clause.subtype}" for clause in accept.parse(header)] == expected


def test_many_clauses_are_sorted_in_proportion_to_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is better than those before it."""
    comparisons, before = 0, accept._before

    def counted(left: accept.Clause, right: accept.Clause) -> bool:
        nonlocal comparisons
        comparisons += 1
        return before(left, right)

    monkeypatch.setattr(accept, "_before", counted)
    clauses = accept.parse(",".join(f"a/x{i};q=0.{i:04}" for i in range(500)))
    assert [clause.subtype for clause in clauses[:2]] == ["x499", "x498"]
    assert comparisons == 0
    accept.parse(",".join(f"a/x{i};q=0.{i:04}" for i in range(12)))
    assert comparisons == 66


def test_the_beginning_of_a_long_header_counts_and_is_not_remembered() -> None:
    long = "application/yaml," + "a/b," * 250_000
    assert negotiation.negotiate(long, custom=True).media_type == YAML
    assert len(accept.parse(long)) == 8 * 1024 // 4 - 3
    assert len(accept.parse("a/b," * 256)) == 256
    with pytest.raises(StatusError):
        negotiation.negotiate("a/b," * 2100 + JSON, custom=True)


@pytest.mark.parametrize(
    ("header", "media_type"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("application/yaml", YAML),
        ("application/vnd.kubernetes.protobuf", PROTOBUF),
        ("application/xml, application/json;q=0.5", JSON),
        (f"application/json;{DISCOVERY}, application/yaml", YAML),
        ("application/json;stream=watch", JSON),
        ("application/yaml;stream=watch", None),
        ("application/json;stream=other", None),
        ("application/json;sv=v1", None),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
        ("text/plain", None),
    ],
)
def test_the_form_of_a_plain_document(header: str, media_type: str | None) -> None:
    if media_type is not None:
        assert negotiation.negotiate_document(header).media_type == media_type
        return
    with pytest.raises(StatusError, match="only the following media types are accepted: application/json, "):
        negotiation.negotiate_document(header)
    assert negotiation.negotiate_status(header) is None


@pytest.mark.parametrize(
    ("header", "media_type"),
    [
        (f"application/json;{DISCOVERY}", JSON),
        ("application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", JSON),
        (f"application/json;profile=nopeer;{DISCOVERY}", JSON),
        (f"application/yaml;{DISCOVERY}", YAML),
        (f"application/json, application/json;{DISCOVERY}", JSON),
        (f"application/json;{DISCOVERY.replace('v2', 'v2beta1')}", None),
        ("application/json", None),
        ("", None),
    ],
)
def test_the_form_of_the_aggregated_document(header: str, media_type: str | None) -> None:
    chosen = negotiation.negotiate_aggregated(header)
    assert (chosen.media_type if chosen else None) == media_type


@pytest.mark.parametrize("header", ["", "*/*", "a/b, */*", "application/yaml;as=Table", "a/b,application/json ; q=0.1"])
def test_a_route_takes_what_names_a_type_it_produces(header: str) -> None:
    negotiation.check_route(header)


@pytest.mark.parametrize("header", ["application/*", "*", "text/plain", "garbage"])
def test_a_route_refuses_the_rest(header: str) -> None:
    with pytest.raises(StatusError, match="406: Not Acceptable\n\nAvailable representations: application/json"):
        negotiation.check_route(header, (JSON,))
