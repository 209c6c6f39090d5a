"""The resource.k8s.io group."""

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.resource.claim_access import ClaimAccess as ClaimAccess
from fakeapiserver.registry.resource.claim_gates import gated_claim_fields, gated_claim_fields_since
from fakeapiserver.registry.resource.deviceclass import DeviceClassStrategy
from fakeapiserver.registry.resource.devicetaintrule import DeviceTaintRuleStrategy
from fakeapiserver.registry.resource.resourceclaim import ResourceClaimStrategy
from fakeapiserver.registry.resource.resourceclaimtemplate import ResourceClaimTemplateStrategy
from fakeapiserver.registry.resource.resourcepoolstatusrequest import ResourcePoolStatusRequestStrategy
from fakeapiserver.registry.resource.resourceslice import ResourceSliceStrategy

_CLAIM = gated_claim_fields("spec")
_RESULTS = ("status", "allocation", "devices", "results", "*")
_DEVICES = ("spec", "devices", "*")

RESOURCES: dict[str, Strategy] = {
    "deviceclasses": DeviceClassStrategy(
        has_generation=True,
        returns_deleted_object=True,
        validate_name=names.name_is_long,
        validates_generate_name=False,
        update_meta_checks=("create", "update"),
        validated_twice_until="v1.34",
        gated_fields={"DRAExtendedResource": [("spec", "extendedResourceName")]},
    ),
    "devicetaintrules": DeviceTaintRuleStrategy(
        has_generation=True, returns_deleted_object=True, status_reset_fields=("spec", "metadata")
    ),
    "resourceclaims": ResourceClaimStrategy(
        status_reset_fields=("spec", "metadata"),
        status_disowned_until={"v1.34": ("spec",)},
        returns_deleted_object=True,
        update_meta_checks=("create", "update"),
        validated_twice_until="v1.34",
        gated_fields={
            **_CLAIM,
            "DRAAdminAccess": [*_CLAIM["DRAAdminAccess"], (*_RESULTS, "adminAccess")],
            "DRAConsumableCapacity": [
                *_CLAIM["DRAConsumableCapacity"],
                (*_RESULTS, "shareID"),
                (*_RESULTS, "consumedCapacity"),
                ("status", "devices", "*", "shareID"),
            ],
            "DRADeviceBindingConditions": [(*_RESULTS, "bindingConditions"), (*_RESULTS, "bindingFailureConditions")],
            "DRAOptionalNodeOperations": [(*_RESULTS, "skipNodeOperations")],
            "DRAResourceClaimDeviceStatus": [("status", "devices")],
        },
        gated_since=gated_claim_fields_since("spec"),
    ),
    "resourceclaimtemplates": ResourceClaimTemplateStrategy(
        returns_deleted_object=True,
        update_meta_checks=("create", "spec", "update"),
        gated_fields=gated_claim_fields("spec", "spec"),
        gated_since=gated_claim_fields_since("spec", "spec"),
    ),
    "resourcepoolstatusrequests": ResourcePoolStatusRequestStrategy(
        allow_unconditional_update=False,
        returns_deleted_object=True,
        status_reset_fields=("spec", "metadata"),
        gated_fields={"DRAPartitionableDevicesType": [("spec", "defaultPartitionTypeAttribute")]},
    ),
    "resourceslices": ResourceSliceStrategy(
        has_generation=True,
        generation_counts_disabled=True,
        tells_empties=True,
        returns_deleted_object=True,
        gated_fields={
            "DRAConsumableCapacity": [
                (*_DEVICES, "allowMultipleAllocations"),
                (*_DEVICES, "capacity", "*", "requestPolicy"),
            ],
            "DRADeviceBindingConditions": [
                (*_DEVICES, name) for name in ("bindingConditions", "bindingFailureConditions", "bindsToNode")
            ],
            "DRADeviceTaints": [(*_DEVICES, "taints")],
            "DRAListTypeAttributes": [
                (*_DEVICES, "attributes", "*", name) for name in ("bools", "ints", "strings", "versions")
            ],
            "DRADeviceCompatibilityGroups": [(*_DEVICES, "consumesCounters", "*", "compatibilityGroups")],
            "DRANodeAllocatableResources": [
                (*_DEVICES, name) for name in ("nodeAllocatableResourceMappings", "nodeAllocatableResources")
            ],
            "DRAOptionalNodeOperations": [("spec", "skipNodeOperations")],
            "DRAPartitionableDevicesType": [("spec", "partitionTypeAttribute")],
            "DRAPartitionableDevices": [
                ("spec", "sharedCounters"),
                ("spec", "perDeviceNodeSelection"),
                *((*_DEVICES, name) for name in ("consumesCounters", "nodeName", "nodeSelector", "allNodes")),
            ],
        },
        selectable_fields={"spec.driver": "spec.driver", "spec.nodeName": "spec.nodeName"},
        unknown_field="field label not supported for {kind}: {}",
    ),
}
