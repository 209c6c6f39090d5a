"""The node.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.node.runtimeclass import RuntimeClassStrategy

RESOURCES: dict[str, Strategy] = {
    "runtimeclasses": RuntimeClassStrategy(
        allow_create_on_update=True,
        allow_unconditional_update=False,
        kube_finalizers=False,
        update_meta_checks=("create", "spec", "update"),
    )
}
