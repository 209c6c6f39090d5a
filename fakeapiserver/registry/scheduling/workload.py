"""Workloads: templates of the groups of pods that they consist of (podgroup.py).

Upstream: pkg/registry/scheduling/workload/strategy.go, pkg/apis/scheduling/v1alpha2/zz_generated.validations.go,
pkg/apis/scheduling/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.declarative import (
    long_name,
    map_list_errors,
    optional_text_errors,
    required_text_errors,
    short_name,
    unchanged_errors,
)
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.scheduling.podgroup import GROUP_FIELDS, group_errors

_SPEC: Final = Path("spec")
_MAX_TEMPLATES: Final = 8


class WorkloadStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], _SPEC.child("podGroupTemplates")
        errors: ErrorList = []
        if (owner := spec.get("controllerRef")) is not None:
            errors += _owner_errors(owner, _SPEC.child("controllerRef"))
        templates = spec.get("podGroupTemplates") or []
        if not templates:
            return [*errors, field.required(path)]
        return errors + map_list_errors(templates, _MAX_TEMPLATES, _template_errors, path, _as_struct)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = unchanged_errors(obj["spec"], old["spec"], ("controllerRef", "podGroupTemplates"), _SPEC)
        templates = obj["spec"].get("podGroupTemplates") or []
        if len(templates) > _MAX_TEMPLATES:
            errors.append(field.too_many(_SPEC.child("podGroupTemplates"), len(templates), _MAX_TEMPLATES))
        return errors if templates else [*errors, field.required(_SPEC.child("podGroupTemplates"))]

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


def _as_struct(template: Object) -> Object:
    return {name: template[name] for name in ("name", *GROUP_FIELDS) if name in template}


def _owner_errors(owner: Object, path: Path) -> ErrorList:
    errors = optional_text_errors(owner, "apiGroup", long_name, path) if owner.get("apiGroup") else []
    errors += required_text_errors(owner, "kind", names.path_segment_name, path)
    return errors + required_text_errors(owner, "name", names.path_segment_name, path)


def _template_errors(template: Object, path: Path) -> ErrorList:
    return required_text_errors(template, "name", short_name, path) + group_errors(template, path)
