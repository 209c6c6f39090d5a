"""Keeps the number of pods that a ReplicationController wants (upstream: pkg/controller/replication/replication_controller.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.labels import Selector, from_label_selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import REPLICATION_CONTROLLERS
from fakeapiserver.component_helpers.workloads.replica_sets import ReplicaSetController
from fakeapiserver.controller_runtime.controller import Controller


def selector_of(obj: Object) -> Selector:
    return from_label_selector({"matchLabels": obj["spec"].get("selector")})


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ReplicaSetController(
        context,
        GroupVersionKind("", "v1", "ReplicationController"),
        REPLICATION_CONTROLLERS,
        "replication-controller",
        selector_of=selector_of,
        counts_terminating=False,
    )
    controller = context.controller(reconciler, workers=context.configuration.concurrent_rc_syncs)
    reconciler.add_to(controller)
    return [controller]
