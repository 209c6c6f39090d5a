"""The storage.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {
    "csidrivers": Strategy(allow_unconditional_update=False, returns_deleted_object=True),
    "csinodes": Strategy(allow_unconditional_update=False, returns_deleted_object=True),
    "csistoragecapacities": Strategy(allow_unconditional_update=False),
    "storageclasses": Strategy(returns_deleted_object=True),
    "volumeattachments": Strategy(allow_unconditional_update=False, returns_deleted_object=True),
    "volumeattributesclasses": Strategy(returns_deleted_object=True),
}
