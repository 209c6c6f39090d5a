"""The rules that replica sets and replication controllers share: their status, and the row of their table.

Upstream: pkg/registry/{apps/replicaset,core/replicationcontroller}/strategy.go, pkg/printers/internalversion/printers.go.
"""

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.pod.options import WithPods
from fakeapiserver.registry.core.workload_status_validation import replica_set_status_errors
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age, container_cells


class ReplicasStrategy(WithPods, kw_only=True):
    """The strategy of kinds that keep a number of replicas of one pod template."""

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0}

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return replica_set_status_errors(obj.get("status") or {})

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("replicas", 0),
            status.get("replicas", 0),
            status.get("readyReplicas", 0),
            age(obj, now),
            *container_cells(spec.get("template")),
            self.selector_cell(spec.get("selector")),
        ]

    def selector_cell(self, selector: Object | None) -> str:
        """The selector as the table shows it."""
        raise NotImplementedError
