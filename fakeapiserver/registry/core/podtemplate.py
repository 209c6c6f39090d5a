"""Pod templates, stored by themselves.

Upstream: pkg/registry/core/podtemplate/strategy.go.
"""

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.apis.quantity_fields import IN_POD_TEMPLATE, QuantityFields
from fakeapiserver.registry.core.pod.options import PodOptions, WithPods
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.core.pod.validation import pod_template_errors
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings, updated_template_warnings
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import container_cells, format_labels


class PodTemplateStrategy(WithPods, kw_only=True):
    pod_spec_path: FieldPath = ("template", "spec")
    quantity_fields: QuantityFields = IN_POD_TEMPLATE

    def default(self, obj: Object, version: str) -> None:
        default_pod_template(obj.setdefault("template", {}), image_volumes=self.pod_options.image_volumes)

    def judge(self, obj: Object, options: PodOptions) -> ErrorList:
        return pod_template_errors(obj["template"], Path("template"), options)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.judge(obj, self.pod_options.beside(old["template"]))

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_template_warnings(obj["template"], Path("template"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return updated_template_warnings(obj, old, obj["template"], Path("template"))

    def table_row(self, obj: Object, now: float) -> Cells:
        template = obj.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels")
        return [metadata(obj).get("name", ""), *container_cells(template), format_labels(labels)]
