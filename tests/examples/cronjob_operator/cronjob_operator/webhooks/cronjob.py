"""Webhooks of CronJob."""

from collections.abc import Sequence
from typing import Any

from fakeapiserver.apimachinery import cron
from fakeapiserver.controller_runtime import Manager
from fakeapiserver.controller_runtime.markers import webhook
from fakeapiserver.controller_runtime.webhook.admission import DefaulterHandler, Request, ValidatorHandler, Webhook

Object = dict[str, Any]
MAX_NAME = 52  # jobs' names are eleven letters longer, and may have 63


@webhook(
    path="/mutate-batch-tutorial-example-com-v1-cronjob",
    mutating=True,
    groups=["batch.tutorial.example.com"],
    versions=["v1"],
    resources=["cronjobs"],
    name="mcronjob-v1.kb.io",
)
class CronJobDefaulter:
    """Fills in what was left out."""

    async def default(self, obj: Object, request: Request) -> None:
        """Changes `obj` in place."""
        spec = obj["spec"]
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)


@webhook(
    path="/validate-batch-tutorial-example-com-v1-cronjob",
    mutating=False,
    groups=["batch.tutorial.example.com"],
    versions=["v1"],
    resources=["cronjobs"],
    name="vcronjob-v1.kb.io",
)
class CronJobValidator:
    """Rejects invalid schedules, and names that are too long for jobs."""

    async def validate_create(self, obj: Object) -> Sequence[str] | None:
        return self._check(obj)

    async def validate_update(self, old: Object, new: Object) -> Sequence[str] | None:
        return self._check(new)

    async def validate_delete(self, obj: Object) -> Sequence[str] | None:
        return None

    def _check(self, obj: Object) -> Sequence[str] | None:
        if len(obj["metadata"].get("name", "")) > MAX_NAME:
            raise ValueError(f"metadata.name: must be no more than {MAX_NAME} characters")
        try:
            cron.parse(obj["spec"]["schedule"])
        except ValueError as error:
            raise ValueError(f"spec.schedule: {error}") from None
        return None


def setup_webhook_with_manager(manager: Manager) -> None:
    """Registers them with the manager's webhook server."""
    server = manager.webhook_server
    server.register("/mutate-batch-tutorial-example-com-v1-cronjob", Webhook(DefaulterHandler(CronJobDefaulter())))
    server.register("/validate-batch-tutorial-example-com-v1-cronjob", Webhook(ValidatorHandler(CronJobValidator())))
