"""Keeps the number of pods that a ReplicaSet wants (upstream: pkg/controller/replicaset/replica_set.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import REPLICA_SETS
from fakeapiserver.component_helpers.workloads.replica_sets import ReplicaSetController, label_selector_of
from fakeapiserver.controller_runtime.controller import Controller


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ReplicaSetController(
        context,
        GroupVersionKind("apps", "v1", "ReplicaSet"),
        REPLICA_SETS,
        "replicaset-controller",
        selector_of=label_selector_of,
        counts_terminating=True,
    )
    controller = context.controller(reconciler, workers=context.configuration.concurrent_replicaset_syncs)
    reconciler.add_to(controller)
    return [controller]
