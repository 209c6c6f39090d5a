"""Errors of rules that a type declares, beside those of handwritten ones."""

import pytest

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.registry.declared.errors import with_declared

POLICY = Path("spec").child("policyName")
RESPONDER = Path("spec").child("template", "spec", "evictionResponders").index(0).child("name")


@pytest.mark.parametrize(
    ("gates", "details"),
    [({}, ["", ""]), ({"DeclarativeValidationBeta": False}, ["by hand", ""])],
)
def test_beta_rules_need_their_gate(gates: dict[str, bool], details: list[str]) -> None:
    """The binding's rule is beta; the one of eviction responders isn't."""
    features = feature_gates("v1.37", gates)
    found = [
        with_declared([field.required(path, "by hand")], {"kind": kind}, GroupVersion(group, "v1"), features)
        for kind, group, path in (
            ("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io", POLICY),
            ("Deployment", "apps", RESPONDER),
        )
    ]
    assert [error.detail for errors in found for error in errors] == details
