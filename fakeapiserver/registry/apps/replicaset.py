"""Replica sets.

Upstream: pkg/registry/apps/replicaset/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go.
"""

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.apps.deployment import pod_name_warnings
from fakeapiserver.registry.apps.template_validation import SPEC, replica_template_errors, selector_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings, updated_template_warnings
from fakeapiserver.registry.core.workload_status_validation import replica_set_status_errors
from fakeapiserver.registry.generic.label_selector import format_label_selector, immutable_selector_errors
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age, container_cells


class ReplicaSetStrategy(WithPods, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_pod_template(spec["template"], image_volumes=self.pod_options.image_volumes)
        spec.setdefault("replicas", 1)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0}

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_name_warnings(obj) + pod_template_warnings(obj["spec"]["template"], SPEC.child("template"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return updated_template_warnings(obj, old, obj["spec"]["template"], SPEC.child("template"))

    def judge(self, obj: Object, options: PodOptions) -> ErrorList:
        spec = obj["spec"]
        errors = non_negative_errors(spec["replicas"], SPEC.child("replicas"))
        errors += non_negative_errors(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
        # Upstream's message says deployment here, too.
        return errors + selector_errors(spec.get("selector"), "deployment") + replica_template_errors(spec, options)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        new, before = obj["spec"].get("selector"), old["spec"].get("selector")
        return self.judge(obj, self.pod_options.beside(old["spec"]["template"])) + immutable_selector_errors(
            new, before, SPEC.child("selector")
        )

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
            format_label_selector(spec.get("selector")),
        ]
