"""The policy group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.policy.poddisruptionbudget import PodDisruptionBudgetStrategy

RESOURCES: dict[str, Strategy] = {
    "poddisruptionbudgets": PodDisruptionBudgetStrategy(
        has_generation=True,
        allow_unconditional_update=False,
        create_checks=("spec",),
        update_meta_checks=(),
        status_meta_checks=(),
    )
}
