"""The apiregistration.k8s.io group."""

from fakeapiserver.registry.apiregistration.apiservice import APIServiceStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "apiservices": APIServiceStrategy(
        status_reset_fields=("spec", "metadata"),
        allow_unconditional_update=False,
        kube_finalizers=False,
        update_meta_checks=("update", "create"),
        repeats_columns=True,
        declares_rules=False,
    )
}
