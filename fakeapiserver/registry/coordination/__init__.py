"""The coordination.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {"leases": Strategy(allow_create_on_update=True, allow_unconditional_update=False)}
