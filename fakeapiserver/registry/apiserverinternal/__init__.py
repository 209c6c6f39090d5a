"""The internal.apiserver.k8s.io group."""

from fakeapiserver.registry.apiserverinternal.storageversion import StorageVersionStrategy, storage_version_name
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "storageversions": StorageVersionStrategy(
        validate_name=storage_version_name,
        allow_unconditional_update=False,
        status_reset_fields=("spec", "metadata"),
        update_meta_checks=(),
        status_meta_checks=(),
    )
}
