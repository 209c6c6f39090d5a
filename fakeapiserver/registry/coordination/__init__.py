"""The coordination.k8s.io group."""

from fakeapiserver.registry.coordination.lease import LeaseStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "leases": LeaseStrategy(
        kube_finalizers=False,
        allow_create_on_update=True,
        allow_unconditional_update=False,
        gated_fields={"CoordinatedLeaderElection": [("spec", "strategy"), ("spec", "preferredHolder")]},
    )
}
