"""Assertions about the objects of a cluster, with messages that show the object, its last writers and its events.

assert_condition(cluster, "deploy/web", "Available")

The first parameter is a `Cluster` or an `AsyncCluster`; none of the functions is awaited. An object is named as kubectl names it, or is an
object of any client: a dict, or one of kubernetes, kubernetes_asyncio, lightkube, kr8s, pykube, kopf or pydantic. What counts is the stored
object, so that a test needn't read it again.
"""

from fakeapiserver.testing.assertions.changes import assert_nothing_left, assert_unchanged
from fakeapiserver.testing.assertions.conditions import assert_condition
from fakeapiserver.testing.assertions.events import assert_event, assert_no_event
from fakeapiserver.testing.assertions.metadata import assert_finalizers, assert_owned_by

__all__ = [
    "assert_condition",
    "assert_event",
    "assert_finalizers",
    "assert_no_event",
    "assert_nothing_left",
    "assert_owned_by",
    "assert_unchanged",
]
