"""The networking.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {
    "ingressclasses": Strategy(has_generation=True),
    "ingresses": Strategy(has_generation=True),
    "networkpolicies": Strategy(has_generation=True),
}
