"""What the comparison of kinds breaks."""

import json
import random
from typing import Any

from conformance.broken_variants import variants

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "count": {"type": "integer"},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
            },
        }
    },
}
VALID: dict[str, Any] = {"metadata": {"name": "x", "uid": "u"}, "spec": {"name": "a", "ports": [{"port": 1}]}}


def made(seed: int = 0, count: int = 1000) -> dict[str, Any]:
    return dict(variants(random.Random(seed), VALID, SCHEMA, {}, count))


def test_every_variant_differs_from_the_object_and_from_the_others() -> None:
    found = made()
    texts = {json.dumps(obj, sort_keys=True) for obj in found.values()}
    assert len(texts) == len(found) > 30
    assert VALID == {"metadata": {"name": "x", "uid": "u"}, "spec": {"name": "a", "ports": [{"port": 1}]}}


def test_every_field_is_left_out_once_and_fields_of_the_schema_are_added() -> None:
    # a port without its number is what is made of an empty port, too
    found = made()
    assert {what.split(": ")[0] for what in found if what.endswith("is missing")} == {
        *("metadata", "metadata.name", "spec", "spec.name", "spec.ports", "spec.ports[0]"),
    }
    assert any(what.startswith("spec.count: added") for what in found)
    assert any(len(obj["spec"].get("ports") or ()) == 2 for obj in found.values() if isinstance(obj.get("spec"), dict))


def test_what_the_server_writes_is_left_alone_and_a_seed_says_it_all() -> None:
    assert not any(what.startswith("metadata.uid") for what in made())
    assert made(1, 20) == made(1, 20) != made(2, 20)
    assert len(made(1, 20)) == 20
