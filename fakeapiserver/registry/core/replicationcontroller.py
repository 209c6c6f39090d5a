"""Replication controllers: labels and selector come from the template when left out.

Upstream: pkg/registry/core/replicationcontroller/strategy.go, pkg/apis/core/v1/defaults.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.pod_template import default_pod_template
from fakeapiserver.registry.core.table_cells import age, container_cells, format_labels
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class ReplicationControllerStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        spec = obj.setdefault("spec", {})
        template = spec.get("template")
        if template is not None:
            if labels := (template.get("metadata") or {}).get("labels"):
                spec.setdefault("selector", dict(labels))
                metadata(obj).setdefault("labels", dict(labels))
            default_pod_template(template)
        spec.setdefault("replicas", 1)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0}

    def fields_of(self, obj: Object) -> dict[str, str]:
        found = super().fields_of(obj)
        found["status.replicas"] = str((obj.get("status") or {}).get("replicas", 0))
        return found

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("replicas", 0),
            status.get("replicas", 0),
            status.get("readyReplicas", 0),
            age(obj, now),
            *container_cells(spec.get("template")),
            format_labels(spec.get("selector")),
        ]
