"""The networking.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.networking.ingress import IngressStrategy
from fakeapiserver.registry.networking.ingressclass import IngressClassStrategy
from fakeapiserver.registry.networking.ipaddress import IPAddressStrategy, ServiceCIDRStrategy
from fakeapiserver.registry.networking.networkpolicy import NetworkPolicyStrategy

RESOURCES: dict[str, Strategy] = {
    "ingressclasses": IngressClassStrategy(has_generation=True, update_meta_checks=("update", "create")),
    "ingresses": IngressStrategy(has_generation=True, update_meta_checks=("update", "create")),
    "ipaddresses": IPAddressStrategy(update_meta_checks=("create", "update")),
    "networkpolicies": NetworkPolicyStrategy(has_generation=True),
    "servicecidrs": ServiceCIDRStrategy(),
}
