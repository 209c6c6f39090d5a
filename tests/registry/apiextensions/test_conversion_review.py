"""The parts of a conversion webhook's response that are used, and the refusals of others. Requests to webhooks are in the area
`conversion` of the recorded exchanges."""

import json
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.registry.apiextensions.conversion_review import ConversionError, converted, review, version_of

WANTED = GroupVersion("example.com", "v2")
STORED = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "default", "uid": "1", "generation": 3, "labels": {"a": "b"}},
    "spec": {"size": 1},
}
ASKED = "conversion webhook for example.com/v1, Kind=Widget"


def answered(obj: Any, **changes: Any) -> bytes:
    response = {"uid": "u", "result": {"status": "Success"}, "convertedObjects": [obj], **changes}
    return json.dumps(
        {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
    ).encode()


def in_v2(**changes: Any) -> dict[str, Any]:
    return {**STORED, "apiVersion": "example.com/v2", "spec": {"size": "1"}, **changes}


def test_a_review_asks_for_one_object_in_another_version() -> None:
    asked = json.loads(review("u", "v1", STORED, WANTED))
    assert (asked["kind"], asked["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert asked["request"] == {"uid": "u", "desiredAPIVersion": "example.com/v2", "objects": [STORED]}


def test_labels_and_annotations_are_the_webhooks_and_all_other_metadata_stays() -> None:
    changed = in_v2(metadata={**STORED["metadata"], "labels": {"c": "d"}, "annotations": {"e": "f"}, "generation": 9})  # type: ignore[dict-item]
    result = converted(answered(changed), "u", "v1", STORED, WANTED)
    assert result["spec"] == {"size": "1"}
    expected = {**STORED["metadata"], "labels": {"c": "d"}, "annotations": {"e": "f"}}  # type: ignore[dict-item]
    assert result["metadata"] == expected


@pytest.mark.parametrize(
    ("accepted", "version"), [(["v1"], "v1"), (["v1beta1", "v1"], "v1beta1"), (["v2", "v1"], "v1")]
)
def test_the_first_known_review_version_is_asked_in(accepted: list[str], version: str) -> None:
    assert version_of(accepted) == version


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (answered(in_v2(), uid="x"), f'{ASKED} failed: expected response.uid="u", got "x"'),
        (answered(in_v2(), result={"status": "Failed", "message": "no"}), f"{ASKED} failed: no"),
        (answered(in_v2(), convertedObjects=[]), f"{ASKED} returned 0 objects, expected 1"),
        (answered(in_v2(apiVersion="example.com/v3")), "(expected example.com/v2, received example.com/v3)"),
        (answered(in_v2(kind="Other")), "invalid kind (expected Widget, received Other)"),
        (answered(in_v2(metadata={"name": "b"})), f"{ASKED} returned invalid object: must have the same name: a != b"),
        (answered("text"), "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (b"{oops", "json parse error: invalid character 'o' looking for beginning of object key string"),
        (b"null", "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
    ],
)
def test_what_is_no_conversion_is_refused_in_upstreams_words(answer: bytes, why: str) -> None:
    with pytest.raises(ConversionError) as caught:
        converted(answer, "u", "v1", STORED, WANTED)
    assert str(caught.value).endswith(why)
