"""Validation of ingresses, their classes, IP addresses and service CIDRs."""

from typing import Any

import pytest

from fakeapiserver.registry.networking.ingress import IngressStrategy
from fakeapiserver.registry.networking.ingressclass import IngressClassStrategy
from fakeapiserver.registry.networking.ipaddress import IPAddressStrategy, is_ip_address
from fakeapiserver.registry.networking.servicecidr import ServiceCIDRStrategy

BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"controller": "example.com/c"}, []),
        ({"controller": "c"}, ['must be a domain-prefixed path (such as "acme.io/foo")']),
        (
            {"controller": "example.com/c", "parameters": {"kind": "a/b", "scope": "Namespace"}},
            ["may not contain '/'", "", "`parameters.scope` is set to 'Namespace'"],
        ),
    ],
)
def test_classes(spec: dict[str, Any], problems: list[str]) -> None:
    assert [error.detail for error in IngressClassStrategy().validate({"spec": spec})] == problems


@pytest.mark.parametrize(
    ("host", "problem"),
    [("a.example.com", ""), ("*.example.com", ""), ("10.0.0.1", "must be a DNS name"), ("a.*.com", "a wildcard DNS")],
)
def test_hosts(host: str, problem: str) -> None:
    spec = {"defaultBackend": BACKEND, "rules": [{"host": host}]}
    errors = IngressStrategy().validate({"metadata": {}, "spec": spec})
    assert [error.detail.startswith(problem) for error in errors] == ([True] if problem else [])


def test_hosts_with_stars_keep_rules_that_were_accepted() -> None:
    spec = {"defaultBackend": BACKEND, "rules": [{"host": "*.example.com", "http": {}}]}
    obj = {"metadata": {}, "spec": spec}
    assert [str(error) for error in IngressStrategy().validate(obj)] == ["spec.rules[0].http.paths: Required value"]
    assert IngressStrategy().validate_update(obj, obj) == []


@pytest.mark.parametrize(
    ("cidrs", "problems"),
    [
        (["10.0.0.0/24", "2001:db8::/112"], []),
        ([], ["at least one CIDR required"]),
        (["10.0.0.0/24", "10.1.0.0/24"], ["may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"]),
        (["2001:DB8::/112"], ['must be in canonical form ("2001:db8::/112")']),
        (["10.0.0.0/24"] * 3, ["may only hold up to 2 values"]),
        (["10.0.0.1", "10.0.0.0/24"], ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
    ],
)  # fmt: skip
def test_ranges(cidrs: list[str], problems: list[str]) -> None:
    assert [error.detail for error in ServiceCIDRStrategy().validate({"spec": {"cidrs": cidrs}})] == problems


def test_addresses() -> None:
    assert is_ip_address("2001:DB8::1", False) == ['must be in canonical form ("2001:db8::1")']
    parent = {"group": "A", "resource": "services", "name": "x/y"}
    errors = IPAddressStrategy().validate({"spec": {"parentRef": parent}})
    assert [error.field for error in errors] == ["spec.parentRef.group", "spec.parentRef.name"]


def test_a_range_with_leading_zeros_counts_as_one_of_its_family() -> None:
    errors = ServiceCIDRStrategy().validate({"spec": {"cidrs": ["192.168.001.0/24", "10.0.0.0/24"]}})
    assert [error.field for error in errors] == ["spec.cidrs[0]", "spec.cidrs"]
