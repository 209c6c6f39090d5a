"""EndpointSlices of services with a selector (upstream: pkg/controller/endpointslice)."""

from fakeapiserver.controllers.endpointslice.controller import new

__all__ = ["new"]
