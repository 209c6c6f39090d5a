"""The batch group."""

from fakeapiserver.registry.batch.cronjob import CronJobStrategy
from fakeapiserver.registry.batch.job import JobStrategy
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "cronjobs": CronJobStrategy(has_generation=True),
    "jobs": JobStrategy(
        has_generation=True,
        default_propagation="Orphan",
        selectable_fields={"status.successful": "status.succeeded"},
    ),
}
