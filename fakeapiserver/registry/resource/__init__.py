"""The resource.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {
    "deviceclasses": Strategy(has_generation=True, returns_deleted_object=True),
    "resourceclaims": Strategy(returns_deleted_object=True),
    "resourceclaimtemplates": Strategy(returns_deleted_object=True),
    "resourceslices": Strategy(
        has_generation=True,
        returns_deleted_object=True,
        selectable_fields={"spec.driver": "spec.driver", "spec.nodeName": "spec.nodeName"},
    ),
}
