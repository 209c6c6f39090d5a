"""The batch group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {
    "cronjobs": Strategy(has_generation=True),
    "jobs": Strategy(
        has_generation=True,
        default_propagation="Orphan",
        selectable_fields={"status.successful": "status.succeeded"},
    ),
}
