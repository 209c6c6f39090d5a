"""Replication controllers: labels and selector come from the template when left out.

Upstream: pkg/registry/core/replicationcontroller/strategy.go, pkg/apis/core/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.core.pod.template import default_pod_template
from fakeapiserver.registry.core.pod.validation import pod_template_errors
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings, updated_template_warnings
from fakeapiserver.registry.core.replicas_strategy import ReplicasStrategy
from fakeapiserver.registry.generic.table_cells import format_labels

_SPEC: Final = Path("spec")
_TEMPLATE: Final = _SPEC.child("template")
_IN_HOSTNAMES: Final = (
    "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended"
)


class ReplicationControllerStrategy(ReplicasStrategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj.setdefault("spec", {})
        template = spec.get("template")
        if template is not None:
            if labels := (template.get("metadata") or {}).get("labels"):
                spec.setdefault("selector", dict(labels))
                metadata(obj).setdefault("labels", dict(labels))
            default_pod_template(template, image_volumes=self.pod_options.image_volumes)
        spec.setdefault("replicas", 1)

    def canonicalize(self, obj: Object) -> None:
        """An object without labels gets those of its template, as upstream does when it reads the object."""
        template: Object = obj["spec"].get("template") or {}
        if not metadata(obj).get("labels") and (labels := metadata(template).get("labels")):
            metadata(obj)["labels"] = dict(labels)

    def judge(self, obj: Object, options: PodOptions) -> ErrorList:
        spec = obj["spec"]
        errors = non_negative_errors(spec.get("minReadySeconds", 0), _SPEC.child("minReadySeconds"))
        if not spec.get("selector"):
            errors.append(field.required(_SPEC.child("selector")))
        errors += non_negative_errors(spec.get("replicas", 0), _SPEC.child("replicas"))
        template = spec.get("template")
        if template is None:
            return [*errors, field.required(_SPEC.child("template"))]
        return errors + _template_errors(template, spec.get("selector") or {}, options)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.judge(obj, self.pod_options.beside(old["spec"].get("template")))

    def warnings_on_create(self, obj: Object) -> list[str]:
        warnings = []
        if problems := names.is_dns1123_label(str(metadata(obj).get("name", ""))):
            warnings.append(f"metadata.name: {_IN_HOSTNAMES}: [{' '.join(problems)}]")
        template = obj["spec"].get("template")
        return warnings + (pod_template_warnings(template, _TEMPLATE) if template is not None else [])

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        """Warnings about the old template, which upstream looks at."""
        template = old["spec"].get("template")
        return [] if template is None else updated_template_warnings(obj, old, template, _TEMPLATE)

    def fields_of(self, obj: Object) -> dict[str, str]:
        fields = super().fields_of(obj)
        fields["status.replicas"] = str((obj.get("status") or {}).get("replicas", 0))
        return fields

    def selector_cell(self, selector: Object | None) -> str:
        return format_labels(selector)


def _template_errors(template: Object, selector: dict[str, str], options: PodOptions) -> ErrorList:
    errors: ErrorList = []
    labels = metadata(template).get("labels")
    if not selector.items() <= (labels or {}).items():
        detail = "`selector` does not match template `labels`"
        sorted_labels = dict(sorted(labels.items())) if labels else None
        errors.append(field.invalid(_TEMPLATE.child("metadata", "labels"), sorted_labels, detail))
    errors += pod_template_errors(template, _TEMPLATE, options)
    spec = template["spec"]
    if spec["restartPolicy"] != "Always":
        path = _TEMPLATE.child("spec", "restartPolicy")
        errors.append(field.not_supported(path, spec["restartPolicy"], ("Always",)))
    if "activeDeadlineSeconds" in spec:
        detail = "activeDeadlineSeconds in ReplicationController is not Supported"
        errors.append(field.forbidden(_TEMPLATE.child("spec", "activeDeadlineSeconds"), detail))
    return errors
