"""Replica sets.

Upstream: pkg/registry/apps/replicaset/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go.
"""

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.apps.deployment import pod_name_warnings
from fakeapiserver.registry.apps.template_validation import SPEC, replica_template_errors, selector_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings, updated_template_warnings
from fakeapiserver.registry.core.replicas_strategy import ReplicasStrategy
from fakeapiserver.registry.generic.label_selector import format_label_selector, immutable_selector_errors


class ReplicaSetStrategy(ReplicasStrategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        default_pod_template(spec["template"], image_volumes=self.pod_options.image_volumes)
        spec.setdefault("replicas", 1)

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

    def selector_cell(self, selector: Object | None) -> str:
        return format_label_selector(selector)
