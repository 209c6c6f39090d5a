"""`fakeapiserver controller-manager`: the bundled controllers against any API server."""
