"""The storagemigration.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.storagemigration.storageversionmigration import StorageVersionMigrationStrategy

RESOURCES: dict[str, Strategy] = {
    "storageversionmigrations": StorageVersionMigrationStrategy(
        allow_unconditional_update=False,
        status_reset_fields=("spec", "metadata"),
        update_meta_checks=("create", "spec", "update"),
    )
}
