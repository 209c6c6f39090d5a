"""Tests that templates are distinguished by the pods that they create."""

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.workloads.pod_template import compute_hash, safe_encoded, same_templates

HASH = "pod-template-hash"


def template(cpu: str = "1", image: str = "web:1", **metadata: object) -> Object:
    container = {"name": "c", "image": image, "resources": {"limits": {"cpu": cpu}}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (template(), template(), True),
        (template(), template(image="web:2"), False),
        (template(labels={"a": "b"}), template(labels={"a": "b", HASH: "x"}), True),
        (template(labels={"a": "b"}), template(labels={"a": "c"}), False),
        (template(), template(labels={}, annotations={}), True),
        (template(), template(annotations={"a": "b"}), False),
        (template(cpu="1Ki"), template(cpu="1024"), True),
        (template(cpu="1Ki"), template(cpu="1025"), False),
    ],
)
def test_what_is_written_in_another_way_is_the_same(left: Object, right: Object, same: bool) -> None:
    assert same_templates(left, right, HASH) == same
    assert same_templates(right, left, HASH) == same


def test_a_hash_is_stable_and_another_one_after_a_collision() -> None:
    found = compute_hash(template(), None)
    assert found == compute_hash(template(), None)
    assert len({found, compute_hash(template(), 1), compute_hash(template(), 2)}) == 3
    assert set(found) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_digits_become_letters_as_upstream_maps_them() -> None:
    assert safe_encoded(1234567890) == "56789bcdf4"
