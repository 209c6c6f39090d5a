"""The scheduling.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {"priorityclasses": Strategy(has_generation=True)}
