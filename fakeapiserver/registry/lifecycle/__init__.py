"""The lifecycle.k8s.io group: requests to evict pods, and what became of them (since 1.37, behind the gate EvictionRequestAPI)."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.lifecycle.eviction import EvictionStrategy
from fakeapiserver.registry.lifecycle.evictionrequest import EvictionRequestStrategy

RESOURCES: dict[str, Strategy] = {
    "evictionrequests": EvictionRequestStrategy(),
    "evictions": EvictionStrategy(),
}
