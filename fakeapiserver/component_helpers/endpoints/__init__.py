"""The pods behind services, as Endpoints and EndpointSlices."""
