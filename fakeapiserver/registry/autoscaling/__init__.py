"""The autoscaling group."""

from fakeapiserver.registry.autoscaling.horizontalpodautoscaler import HorizontalPodAutoscalerStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "horizontalpodautoscalers": HorizontalPodAutoscalerStrategy(
        generation_gate="HPAGeneration",
        gated_fields={
            "HPAConfigurableTolerance": [("spec", "behavior", name, "tolerance") for name in ("scaleUp", "scaleDown")]
        },
    )
}
