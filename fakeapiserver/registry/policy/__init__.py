"""The policy group."""

from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES = {"poddisruptionbudgets": Strategy(has_generation=True, allow_unconditional_update=False)}
