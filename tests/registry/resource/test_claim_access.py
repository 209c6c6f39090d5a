"""Permissions to claim devices that others use."""

import asyncio
from typing import Any

import pytest

from fakeapiserver.apimachinery.field import required
from fakeapiserver.registry.resource.claim_access import ClaimAccess

SPEC = {"devices": {"requests": [{"name": "a", "firstAvailable": []}, {"name": "b", "exactly": {"adminAccess": True}}]}}
CLAIM = {"kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "n"}, "spec": SPEC}
TEMPLATE = {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "n"}, "spec": {"spec": SPEC}}
ALLOCATED = {**CLAIM, "status": {"allocation": {"devices": {"results": [{"adminAccess": True}]}}}}


class Namespaces:
    def __init__(self, labels: dict[str, str]) -> None:
        self._labels = labels

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": self._labels}}


class Request:
    def __init__(self, subresource: str) -> None:
        self.subresource = subresource


@pytest.mark.parametrize(
    ("obj", "old", "subresource", "field"),
    [
        (CLAIM, None, "", "spec.devices.requests[1].adminAccess"),
        (TEMPLATE, None, "", "spec.devices.requests[1].adminAccess"),
        (CLAIM, CLAIM, "", ""),
        (ALLOCATED, CLAIM, "status", "status.allocation.devices.results[0].adminAccess"),
        (ALLOCATED, ALLOCATED, "status", ""),
    ],
)
def test_namespaces_must_say_so(obj: Any, old: Any, subresource: str, field: str) -> None:
    request: Any = Request(subresource)
    labelled: Any = Namespaces({"resource.kubernetes.io/admin-access": "true"})
    assert asyncio.run(ClaimAccess(labelled, None).errors(request, obj, old, [])) == []
    plain: Any = Namespaces({})
    errors = asyncio.run(ClaimAccess(plain, None).errors(request, obj, old, []))
    assert [error.field for error in errors] == ([field] if field else [])


def test_other_errors_are_reported_too() -> None:
    plain: Any = Namespaces({})
    request: Any = Request("")
    errors = asyncio.run(ClaimAccess(plain, None).errors(request, CLAIM, None, [required("x")]))
    assert [error.field for error in errors] == ["spec.devices.requests[1].adminAccess", "x"]


@pytest.mark.parametrize(
    ("version", "label", "allowed"),
    [
        ("v1.33", "resource.k8s.io/admin-access", True),
        ("v1.33", "resource.kubernetes.io/admin-access", False),
        ("v1.34", "resource.k8s.io/admin-access", False),
    ],
)
def test_the_label_had_another_domain(version: str, label: str, allowed: bool) -> None:
    namespaces: Any = Namespaces({label: "true"})
    request: Any = Request("")
    errors = asyncio.run(ClaimAccess(namespaces, None, version).errors(request, CLAIM, None, []))
    assert (not errors) == allowed
