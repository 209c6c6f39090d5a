"""The scheduling.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.scheduling.priorityclass import PriorityClassStrategy

RESOURCES: dict[str, Strategy] = {"priorityclasses": PriorityClassStrategy(has_generation=True)}
