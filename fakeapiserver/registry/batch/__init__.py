"""The batch group."""

from fakeapiserver.registry.batch.cronjob import CronJobStrategy
from fakeapiserver.registry.batch.job import JobStrategy
from fakeapiserver.registry.core.pod.template import gated_pod_fields
from fakeapiserver.registry.generic.strategy import Strategy

_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
RESOURCES: dict[str, Strategy] = {
    "cronjobs": CronJobStrategy(
        legacy_addresses=True,
        has_generation=True,
        status_meta_checks=(),
        gated_fields={
            **gated_pod_fields("spec", "jobTemplate", "spec", "template", "spec"),
            "WorkloadWithJob": [("spec", "jobTemplate", "spec", "scheduling")],
        },
    ),
    "jobs": JobStrategy(
        legacy_addresses=True,
        deletion_warning=_PODS_STAY,
        update_meta_checks=("create", "spec", "update"),
        has_generation=True,
        default_propagation="Orphan",
        selectable_fields={"status.successful": "status.succeeded"},
        unknown_field="field label {quoted} not supported for Job",
        gated_fields={
            **gated_pod_fields("spec", "template", "spec"),
            "WorkloadWithJob": [("spec", "scheduling")],
            "JobPodReplacementPolicy": [("spec", "podReplacementPolicy")],
        },
    ),
}
