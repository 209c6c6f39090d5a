"""The discovery.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {"endpointslices": Strategy(has_generation=True)}
