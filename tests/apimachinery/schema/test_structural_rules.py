"""Schemas of CRDs are refused as a real server (v1.36.3) refused the recorded ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.schema.structural_rules import validate_schema

CASES = json.loads(Path(__file__).with_name("structural_rules_cases.json").read_bytes())


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["schema"])[:80])
def test_refuses_what_the_server_refuses(case: dict[str, Any]) -> None:
    errors = validate_schema(case["schema"], field.Path("spec.validation.openAPIV3Schema"))
    found = [{"reason": e.reason, "message": e.body(), "field": e.field} for e in errors]
    # Upstream visits properties in no order.
    assert sorted(found, key=str) == sorted(case["causes"], key=str)


def test_a_good_schema_has_no_errors() -> None:
    spec = {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}}
    assert validate_schema({"type": "object", "properties": {"spec": spec}}, field.Path("schema")) == []
