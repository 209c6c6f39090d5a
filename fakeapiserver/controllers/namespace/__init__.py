"""Empties a namespace that is being deleted, then lets it go (upstream: pkg/controller/namespace)."""

from fakeapiserver.controllers.namespace.controller import new

__all__ = ["new"]
