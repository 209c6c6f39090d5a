"""The coordination.k8s.io group."""

from fakeapiserver.registry.coordination.lease import LeaseStrategy
from fakeapiserver.registry.coordination.leasecandidate import LeaseCandidateStrategy
from fakeapiserver.registry.core.data_keys import is_config_map_key
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "leasecandidates": LeaseCandidateStrategy(
        validate_name=lambda name, prefix: is_config_map_key(name),
        kube_finalizers=False,
        allow_create_on_update=True,
        allow_unconditional_update=False,
    ),
    "leases": LeaseStrategy(
        kube_finalizers=False,
        allow_create_on_update=True,
        allow_unconditional_update=False,
        gated_fields={"CoordinatedLeaderElection": [("spec", "strategy"), ("spec", "preferredHolder")]},
    ),
}
