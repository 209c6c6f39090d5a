"""Marks nodes that are lost: their conditions, their taints, the readiness of their pods."""

from fakeapiserver.controllers.node_lifecycle.controller import new

__all__ = ["new"]
