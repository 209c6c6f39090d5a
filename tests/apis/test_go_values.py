"""Values in Go's syntax, as a server of 1.33 was seen to show them."""

from typing import Any

import pytest
from msgspec import Raw

from fakeapiserver.apimachinery.field import json_text
from fakeapiserver.apis.go_values import go_syntax
from fakeapiserver.apis.internal_form import internal_form, selector_form


@pytest.mark.parametrize(
    ("place", "value", "shown"),
    [
        ("spec.replicas", -1, None),
        ("metadata.name", "x", None),
        ("spec.operator", json_text("<&>"), '"<&>"'),
        ("spec.selector", None, '"null"'),
        ("spec.scopes", ["x"], '[]core.ResourceQuotaScope{"x"}'),
        ("spec.scopes", None, "[]core.ResourceQuotaScope(nil)"),
        ("spec.template.metadata.labels", {"b": "c", "a": "é"}, 'map[string]string{"a":"é", "b":"c"}'),
        ("spec.fc.targetWWNs", ["w1", "w2"], '[]string{"w1", "w2"}'),
        ("spec.limits[0].min[a]", "a", "a"),
        ("spec.limits[0].min[a]", json_text("a"), "a"),
        ("spec.request", "LS0=", "[]byte{0x2d, 0x2d}"),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z", "2026-01-01 00:00:00 +0000 UTC"),
        (
            "spec.limits[0].max[pods]",
            "100m",
            "resource.Quantity{i:resource.int64Amount{value:100, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, "
            's:"100m", Format:"DecimalSI"}',
        ),
        (
            "spec.capacity",
            {"storage": "1Gi"},
            'core.ResourceList{"storage":resource.Quantity{i:resource.int64Amount{value:1073741824, scale:0}, '
            'd:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1Gi", Format:"BinarySI"}}',
        ),
        (
            "data",
            Raw(b'{"a":1}'),
            "runtime.RawExtension{Raw:[]uint8{0x7b, 0x22, 0x61, 0x22, 0x3a, 0x31, 0x7d}, Object:runtime.Object(nil)}",
        ),
        ("roleRef", internal_form({"name": "n"}, "RoleRef"), 'rbac.RoleRef{APIGroup:"", Kind:"", Name:"n"}'),
        (
            "spec.ports[1]",
            internal_form({"protocol": "TCP", "port": 1}, "ServicePort"),
            'core.ServicePort{Name:"", Protocol:"TCP", AppProtocol:(*string)(nil), Port:1, '
            'TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:""}, NodePort:0}',
        ),
        (
            "spec.selector",
            selector_form({"matchLabels": {"app": "web"}}),
            'v1.LabelSelector{MatchLabels:map[string]string{"app":"web"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}',
        ),
    ],
)
def test_values_are_shown_with_their_types(place: str, value: Any, shown: str | None) -> None:
    assert go_syntax(place, value) == shown
