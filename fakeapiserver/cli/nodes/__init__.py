"""`fakeapiserver nodes`: simulated nodes and a scheduler for any API server."""
