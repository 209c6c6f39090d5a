"""The fakeapiserver command."""
