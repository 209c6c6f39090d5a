"""Schemas of CRDs are refused as a real server (v1.36.3) refused the recorded ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.schema.schema_rules import validate_schema
from fakeapiserver.registry.apiextensions.object_meta import object_meta

CASES = json.loads(Path(__file__).with_name("structural_rules_cases.json").read_bytes())


def problems(schema: dict[str, Any], path: str) -> field.ErrorList:
    return validate_schema(schema, field.Path(path), object_meta().decode, has_status=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["schema"])[:80])
def test_refuses_what_the_server_refuses(case: dict[str, Any]) -> None:
    errors = problems(case["schema"], "spec.validation.openAPIV3Schema")
    found = [{"reason": e.reason, "message": e.body(), "field": e.field} for e in errors]
    # Upstream visits properties in no order.
    assert sorted(found, key=str) == sorted(case["causes"], key=str)


def test_a_good_schema_has_no_errors() -> None:
    spec = {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}}
    assert problems({"type": "object", "properties": {"spec": spec}}, "schema") == []
