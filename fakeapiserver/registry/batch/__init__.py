"""The batch group."""

from fakeapiserver.registry.batch.cronjob import CronJobStrategy
from fakeapiserver.registry.batch.job import JobStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "cronjobs": CronJobStrategy(has_generation=True, status_meta_checks=()),
    "jobs": JobStrategy(
        update_meta_checks=("create", "update"),
        has_generation=True,
        default_propagation="Orphan",
        selectable_fields={"status.successful": "status.succeeded"},
    ),
}
