"""The networking.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.networking.ingress import IngressStrategy
from fakeapiserver.registry.networking.ingressclass import IngressClassStrategy
from fakeapiserver.registry.networking.ipaddress import IPAddressStrategy, is_ip_address
from fakeapiserver.registry.networking.networkpolicy import NetworkPolicyStrategy
from fakeapiserver.registry.networking.servicecidr import ServiceCIDRStrategy

RESOURCES: dict[str, Strategy] = {
    "ingressclasses": IngressClassStrategy(has_generation=True, update_meta_checks=("update", "immutable", "create")),
    "ingresses": IngressStrategy(legacy_addresses=True, has_generation=True, update_meta_checks=("update", "create")),
    "ipaddresses": IPAddressStrategy(
        validate_name=is_ip_address, generates_names=False, update_meta_checks=("create", "spec", "update")
    ),
    "networkpolicies": NetworkPolicyStrategy(legacy_addresses=True, has_generation=True, validated_twice_until="v1.35"),
    "servicecidrs": ServiceCIDRStrategy(status_reset_fields=("spec", "metadata"), status_disowned_until={"v1.35": ()}),
}
