"""The discovery.k8s.io group."""

from fakeapiserver.registry.discovery.endpointslice import EndpointSliceStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "endpointslices": EndpointSliceStrategy(
        legacy_addresses=True,
        has_generation=True,
        generation_counts_disabled=True,
        update_meta_checks=("create",),
        gated_fields={"PreferSameTrafficDistribution": [("endpoints", "*", "hints", "forNodes")]},
    )
}
