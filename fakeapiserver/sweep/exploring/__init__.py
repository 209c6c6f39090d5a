"""Tries the specs that a CustomResourceDefinition allows: `fakeapiserver explore`."""
