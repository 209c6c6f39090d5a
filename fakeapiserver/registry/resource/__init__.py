"""The resource.k8s.io group."""

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.resource.device import (
    DeviceClassStrategy,
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
    ResourceSliceStrategy,
)

RESOURCES: dict[str, Strategy] = {
    "deviceclasses": DeviceClassStrategy(
        has_generation=True,
        returns_deleted_object=True,
        validate_name=names.name_is_long,
        validates_generate_name=False,
        update_meta_checks=("create", "update"),
    ),
    "resourceclaims": ResourceClaimStrategy(
        status_reset_fields=("spec", "metadata"),
        returns_deleted_object=True,
        update_meta_checks=("create", "update"),
    ),
    "resourceclaimtemplates": ResourceClaimTemplateStrategy(
        returns_deleted_object=True, update_meta_checks=("create", "spec", "update")
    ),
    "resourceslices": ResourceSliceStrategy(
        has_generation=True,
        generation_counts_disabled=True,
        returns_deleted_object=True,
        gated_fields={
            "DRAListTypeAttributes": [
                ("spec", "devices", "*", "attributes", "*", name) for name in ("bools", "ints", "strings", "versions")
            ],
            "DRANodeAllocatableResources": [("spec", "devices", "*", "nodeAllocatableResourceMappings")],
        },
        selectable_fields={"spec.driver": "spec.driver", "spec.nodeName": "spec.nodeName"},
        unknown_field="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
    ),
}
