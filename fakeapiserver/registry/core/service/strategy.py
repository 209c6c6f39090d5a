"""Services: their type decides which fields they have; the server allocates their addresses and ports.

Upstream: pkg/registry/core/service/{strategy.go,storage/storage.go}, pkg/apis/core/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.service.ports import needs_health_check, node_ports
from fakeapiserver.registry.core.service.printer import service_row
from fakeapiserver.registry.core.service.validation import (
    TRAFFIC_POLICIES,
    service_errors,
    service_status_errors,
    service_update_errors,
)
from fakeapiserver.registry.core.service.warnings import load_balancer_warnings, service_warnings
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.strategy_facts import NameFunction

_WITH_TRAFFIC_POLICY: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_AFFINITY_SECONDS: Final = 10800


class ServiceStrategy(Strategy, kw_only=True):
    def name_rule(self, obj: Object) -> NameFunction:
        relaxed = self.features.enabled("RelaxedServiceNameValidation")
        return self.validate_name if relaxed else names.name_is_dns1035_label

    def default(self, obj: Object, version: str) -> None:
        spec = obj.setdefault("spec", {})
        kind = spec.setdefault("type", "ClusterIP")
        _default_affinity(spec)
        for port in spec.get("ports") or ():
            if port.get("targetPort", 0) in (0, ""):
                port["targetPort"] = port.get("port", 0)
        if externally_accessible(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if kind in _WITH_TRAFFIC_POLICY:
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        _on_read(obj["spec"])

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        if "status" in old:
            obj["status"] = old["status"]
        _drop_type_dependent_fields(obj, old)
        _on_read(obj["spec"])

    def with_unshown(self, old: Object) -> Object:
        spec = old["spec"]
        if spec.get("type") != "ExternalName" or not any(
            map(_owns_traffic_policy, metadata(old).get("managedFields") or ())
        ):
            return old
        return {**old, "spec": {**spec, "internalTrafficPolicy": "Cluster"}}

    @property
    def _same_traffic(self) -> bool:
        return self.features.enabled("PreferSameTrafficDistribution")

    def validate(self, obj: Object) -> ErrorList:
        return service_errors(obj, same_traffic=self._same_traffic)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return service_update_errors(obj, old, same_traffic=self._same_traffic)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return service_status_errors(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return service_warnings(obj, self.features)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return service_warnings(obj, self.features)

    def warnings_on_status_update(self, obj: Object, old: Object) -> list[str]:
        return load_balancer_warnings(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return service_row(obj, now)


def externally_accessible(spec: Object) -> bool:
    """Reports whether clients outside of the cluster may reach the service (upstream: pkg/api/service/util.go, ExternallyAccessible)."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _default_affinity(spec: Object) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _owns_traffic_policy(entry: Object) -> bool:
    return "f:internalTrafficPolicy" in (entry.get("fieldsV1") or {}).get("f:spec", {})


def _on_read(spec: Object) -> None:
    """Removes a field that upstream stores but never shows, unless validation is going to refuse it."""
    if spec.get("type") == "ExternalName" and spec.get("internalTrafficPolicy") in TRAFFIC_POLICIES:
        spec.pop("internalTrafficPolicy", None)


def _drop_type_dependent_fields(obj: Object, old: Object) -> None:
    """Drops the fields that make no sense for the new type, unless they have changed, too: validation refuses those."""
    spec, before = obj["spec"], old.get("spec") or {}
    if before["type"] != "ExternalName" and spec["type"] == "ExternalName":
        _drop_same(spec, before, ("clusterIP", "clusterIPs"))
        _drop_same(spec, before, ("ipFamilies",))
        _drop_same(spec, before, ("ipFamilyPolicy",))
    if _has_node_ports(before) and not _has_node_ports(spec) and set(node_ports(before)) >= set(node_ports(spec)):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_same(spec, before, ("healthCheckNodePort",))
    if before["type"] == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop_same(spec, before, ("allocateLoadBalancerNodePorts",))
        _drop_same(spec, before, ("loadBalancerClass",))
    if externally_accessible(before) and not externally_accessible(spec):
        _drop_same(spec, before, ("externalTrafficPolicy",))
    if spec["type"] != "LoadBalancer":
        obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}


def _has_node_ports(spec: Object) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _drop_same(spec: Object, before: Object, names: tuple[str, ...]) -> None:
    if all(spec.get(name) == before.get(name) for name in names):
        for name in names:
            spec.pop(name, None)
