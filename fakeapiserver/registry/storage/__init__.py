"""The storage.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.storage.csidriver import CSIDriverStrategy
from fakeapiserver.registry.storage.csinode import CSINodeStrategy
from fakeapiserver.registry.storage.csistoragecapacity import CSIStorageCapacityStrategy
from fakeapiserver.registry.storage.storageclass import StorageClassStrategy
from fakeapiserver.registry.storage.volumeattachment import VolumeAttachmentStrategy
from fakeapiserver.registry.storage.volumeattributesclass import VolumeAttributesClassStrategy

RESOURCES: dict[str, Strategy] = {
    "csidrivers": CSIDriverStrategy(
        allow_unconditional_update=False,
        returns_deleted_object=True,
        gated_fields={
            "MutableCSINodeAllocatableCount": [("spec", "nodeAllocatableUpdatePeriodSeconds")],
            "SELinuxMountReadWriteOncePod": [("spec", "seLinuxMount")],
            "VolumeLimitScaling": [("spec", "preventPodSchedulingIfMissing")],
        },
    ),
    "csinodes": CSINodeStrategy(
        status_reset_fields=("spec", "metadata"),
        allow_unconditional_update=False,
        returns_deleted_object=True,
        update_meta_checks=("create",),
        gated_fields={"CSIVolumeHealth": [("status", "storageHealth")]},
        validated_twice_until="v1.35",
    ),
    "csistoragecapacities": CSIStorageCapacityStrategy(
        allow_unconditional_update=False, update_meta_checks=("create", "spec", "update")
    ),
    "storageclasses": StorageClassStrategy(
        returns_deleted_object=True, update_meta_checks=("create", "spec", "update")
    ),
    "volumeattachments": VolumeAttachmentStrategy(
        status_reset_fields=("spec", "metadata"),
        allow_unconditional_update=False,
        returns_deleted_object=True,
        update_meta_checks=("create", "spec"),
        validated_twice_until="v1.34",
        status_meta_checks=(),
        gated_fields={
            "MutableCSINodeAllocatableCount": [("status", name, "errorCode") for name in ("attachError", "detachError")]
        },
    ),
    "volumeattributesclasses": VolumeAttributesClassStrategy(
        returns_deleted_object=True, update_meta_checks=("update", "immutable", "create"), validated_twice_until="v1.34"
    ),
}
