"""The flowcontrol.apiserver.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {
    "flowschemas": Strategy(has_generation=True),
    "prioritylevelconfigurations": Strategy(has_generation=True),
}
