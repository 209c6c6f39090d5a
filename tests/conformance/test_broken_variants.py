"""Tests the faults that the comparison of kinds adds to objects."""

import json
import random
from typing import Any

from conformance.random.broken_variants import Examples, Variant, emptied, variants
from conformance.random.objects import Maker

JSON = "application/json"
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


def made(seed: int = 0, count: int = 1000) -> list[Variant]:
    return list(variants(random.Random(seed), VALID, SCHEMA, {}, count))


def bodies(seed: int = 0) -> dict[str, Any]:
    return {variant.what: variant.request["body"] for variant in made(seed) if "body" in variant.request}


def test_every_variant_differs_from_the_object_and_from_the_others() -> None:
    texts = {json.dumps(obj, sort_keys=True) for obj in bodies().values()}
    assert len(texts) == len(bodies()) > 30
    assert json.dumps(VALID, sort_keys=True) not in texts
    assert VALID == {"metadata": {"name": "x", "uid": "u"}, "spec": {"name": "a", "ports": [{"port": 1}]}}


def test_every_field_is_left_out_once_and_fields_of_the_schema_are_added() -> None:
    # a port without its number is what is made of an empty port, too
    found = [variant.what for seed in range(4) for variant in made(seed)]
    for field in ("metadata", "metadata.name", "spec", "spec.name", "spec.ports", "spec.ports[0]"):
        assert any(f"{field}: is missing" in what for what in found), field
    assert any("spec.count: added" in what for what in found)
    assert any(
        len(obj["spec"].get("ports") or ()) == 2 for obj in bodies().values() if isinstance(obj.get("spec"), dict)
    )


def test_a_key_stands_twice_in_a_text() -> None:
    found = [
        variant.request["text"]
        for variant in made()
        if "is there twice" in variant.what and variant.request["type"] == JSON
    ]
    assert len(found) > 3
    assert all("\\u0001" not in text for text in found)
    assert any(text.count('"ports"') == 2 for text in found)


def test_some_are_yaml_some_are_two_breakages_and_some_ask_for_strictness() -> None:
    found = [variant for seed in range(4) for variant in made(seed)]
    assert any(variant.request.get("type") == "application/yaml" for variant in found)
    assert any("; " in variant.what for variant in found)
    assert {variant.query for variant in found} >= {"", "fieldValidation=Strict", "fieldValidation=Warn"}


def test_values_of_other_objects_are_put_beside_what_there_is() -> None:
    examples = Examples()
    examples.gather({"spec": {"count": 4711}}, SCHEMA, Maker(random.Random(0), {}, broken=0))
    found = variants(random.Random(0), VALID, SCHEMA, {}, 1000, examples)
    assert any("spec.count: added 4711" in variant.what for variant in found)


def test_what_the_server_writes_is_left_alone_and_a_seed_says_it_all() -> None:
    assert not any("metadata.uid:" in variant.what for variant in made())
    assert made(1, 20) == made(1, 20) != made(2, 20)
    assert len(made(1, 20)) == 20


def test_each_list_map_and_text_is_emptied_where_it_is_and_where_it_could_be() -> None:
    found = {variant.what for variant in emptied(VALID, SCHEMA, {})}
    assert found == {
        *("spec: is {}", "spec: is null", 'spec.name: is ""', "spec.name: is null"),
        *("spec.ports: is []", "spec.ports: is null", "spec.ports: is [null]"),
    }
