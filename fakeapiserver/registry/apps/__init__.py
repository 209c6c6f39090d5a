"""The apps group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {
    "daemonsets": Strategy(has_generation=True),
    "deployments": Strategy(has_generation=True),
    "replicasets": Strategy(has_generation=True, selectable_fields={"status.replicas": "status.replicas"}),
    "statefulsets": Strategy(has_generation=True),
}
