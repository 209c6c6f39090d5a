"""Warnings about services that are accepted.

Upstream: pkg/api/service/warnings.go.
"""

from typing import Final

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.registry.core.service.ip_warnings import cidr_warnings, ip_warnings

_SPEC: Final = Path("spec")
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"


def service_warnings(obj: Object, features: FeatureGates = DEFAULT_GATES) -> list[str]:
    """Warnings about fields that are deprecated or have no meaning for this type of service, and about addresses in unusual forms."""
    spec, warnings = obj["spec"], list[str]()
    if _HINTS in (metadata(obj).get("annotations") or {}):
        warnings.append(f"annotation {_HINTS} is deprecated, please use {_MODE} instead")
    if spec.get("clusterIP", "") not in ("", "None"):
        warnings += _each_address(spec, "clusterIPs")
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    external_name = spec.get("type") == "ExternalName"
    if headless and features.at_least("v1.34"):
        warnings += [f"spec.{name} is ignored for headless services" for name in _ignored_when_headless(spec)]
    warnings += _each_address(spec, "externalIPs")
    if spec.get("externalIPs") and not headless and not external_name and features.at_least("v1.36"):
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        warnings += ip_warnings(spec["loadBalancerIP"], _SPEC.child("loadBalancerIP"))
    for i, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        warnings += cidr_warnings(cidr, _SPEC.child("loadBalancerSourceRanges").index(i))
    if external_name and spec.get("externalIPs"):
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not external_name and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose" and features.at_least("v1.35"):
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


def load_balancer_warnings(obj: Object) -> list[str]:
    """Warnings about the addresses in the status of a service or an ingress."""
    points = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    path = Path("status").child("loadBalancer", "ingress")
    return [text for i, point in enumerate(points) for text in ip_warnings(point.get("ip", ""), path.index(i))]


def _each_address(spec: Object, name: str) -> list[str]:
    path = _SPEC.child(name)
    return [text for i, ip in enumerate(spec.get(name) or ()) for text in ip_warnings(ip, path.index(i))]


def _ignored_when_headless(spec: Object) -> list[str]:
    ignored = [name for name in ("loadBalancerIP", "externalIPs") if spec.get(name)]
    return [*ignored, "SessionAffinity"] if spec.get("sessionAffinity") != "None" else ignored
