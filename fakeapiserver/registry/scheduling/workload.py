"""Workloads: templates of the groups of pods that they consist of (podgroup.py).

Upstream: pkg/registry/scheduling/workload/strategy.go, pkg/apis/scheduling/validation/validation.go, and until 1.36
pkg/apis/scheduling/v1alpha2/zz_generated.validations.go. The declared rules since 1.37 are in `declared.py`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.declared.rules import (
    long_name,
    map_list_errors,
    optional_text_errors,
    required_text_errors,
    short_name,
    unchanged_errors,
)
from fakeapiserver.registry.declared.types import declared_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.scheduling.declared import WORKLOAD
from fakeapiserver.registry.scheduling.podgroup import DECLARED_SINCE, gated_group_fields
from fakeapiserver.registry.scheduling.podgroup_v1alpha2 import GROUP_FIELDS, group_errors

_SPEC: Final = Path("spec")
_MAX_TEMPLATES: Final = 8
_MAX_DEPTH: Final = 4
_GROUPS: Final = "podGroupTemplates"
_COMPOSITES: Final = "compositePodGroupTemplates"
_SEVERAL: Final = "detected multiple priority configurations"
_NOT_IDENTICAL: Final = "all priority and priorityClassName values must be identical, detected multiple values"
_CHILDLESS: Final = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"


def gated_workload_fields() -> dict[str, list[FieldPath]]:
    """Feature gate -> fields of a workload's templates, at every depth that they may have."""
    gated: dict[str, list[FieldPath]] = {"CompositePodGroup": [("spec", _COMPOSITES)]}
    for depth in range(_MAX_DEPTH):
        composite = ("spec", *(_COMPOSITES, "*") * depth)
        for gate, paths in gated_group_fields(*composite, _GROUPS, "*").items():
            gated.setdefault(gate, []).extend(paths)
        if depth:
            gated["PodGroupPreemptionPolicy"].append((*composite, "preemptionPolicy"))
    return gated


class WorkloadStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], _SPEC.child(_GROUPS)
        if self.features.at_least(DECLARED_SINCE):
            return _tree_errors(spec) + declared_errors(WORKLOAD, obj, None, self.features, Path())
        errors: ErrorList = []
        if (owner := spec.get("controllerRef")) is not None:
            errors += _owner_errors(owner, _SPEC.child("controllerRef"))
        templates = spec.get(_GROUPS) or []
        if not templates:
            return [*errors, field.required(path)]
        return errors + map_list_errors(templates, _MAX_TEMPLATES, _template_errors, path, _as_struct)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if self.features.at_least(DECLARED_SINCE):
            return _tree_errors(obj["spec"]) + declared_errors(WORKLOAD, obj, old, self.features, Path())
        errors = unchanged_errors(obj["spec"], old["spec"], ("controllerRef", _GROUPS), _SPEC)
        templates = obj["spec"].get(_GROUPS) or []
        if len(templates) > _MAX_TEMPLATES:
            errors.append(field.too_many(_SPEC.child(_GROUPS), len(templates), _MAX_TEMPLATES))
        return errors if templates else [*errors, field.required(_SPEC.child(_GROUPS))]

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


def _tree_errors(spec: Object) -> ErrorList:
    """The errors in the tree of templates as a whole, since 1.37."""
    composites, path = spec.get(_COMPOSITES) or (), _SPEC.child(_COMPOSITES)
    seen = {template.get("name", "") for template in spec.get(_GROUPS) or ()}
    errors = _composite_name_errors(composites, _SPEC, seen)
    for i, template in enumerate(composites):
        if _depth(template) >= _MAX_DEPTH:
            detail = f"maximum template hierarchy depth is {_MAX_DEPTH}"
            shown = [internal_form(child, "CompositePodGroupTemplate") for child in template[_COMPOSITES]]
            errors.append(field.invalid(path.index(i), shown, detail))
    errors += _priority_errors(spec, composites)
    return errors + [
        error for i, template in enumerate(composites) for error in _childless_errors(template, path.index(i))
    ]


def _composite_name_errors(templates: Sequence[Object], path: Path, seen: set[str]) -> ErrorList:
    """The errors for names that are in use elsewhere in the tree. Those within one list are declared rules' errors."""
    errors = _names_in_use(templates, path.child(_COMPOSITES), seen)
    for i, template in enumerate(templates):
        at = path.child(_COMPOSITES).index(i)
        errors += _names_in_use(template.get(_GROUPS) or (), at.child(_GROUPS), seen)
        errors += _composite_name_errors(template.get(_COMPOSITES) or (), at, seen)
    return errors


def _names_in_use(templates: Sequence[Object], path: Path, seen: set[str]) -> ErrorList:
    """The errors for names in `seen`, to which those of the templates are added."""
    used = [template.get("name", "") for template in templates]
    errors = [field.duplicate(path.index(i).child("name"), name) for i, name in enumerate(used) if name in seen]
    seen.update(used)
    return errors


def _depth(template: Object) -> int:
    return 1 + max((_depth(child) for child in template.get(_COMPOSITES) or ()), default=0)


def _priority_errors(spec: Object, composites: Sequence[Object]) -> ErrorList:
    """The error if templates have different priorities."""
    groups = {_priority(template) for template in spec.get(_GROUPS) or ()}
    if len(groups) > 1:
        return [field.invalid(_SPEC, None, _SEVERAL)]
    everything = groups | {_priority(template) for composite in composites for template in _tree(composite)}
    return [field.invalid(_SPEC, None, _NOT_IDENTICAL)] if len(everything) > 1 else []


def _tree(composite: Object) -> Iterator[Object]:
    yield composite
    yield from composite.get(_GROUPS) or ()
    for child in composite.get(_COMPOSITES) or ():
        yield from _tree(child)


def _priority(template: Object) -> tuple[str, int | None]:
    return template.get("priorityClassName", ""), template.get("priority")


def _childless_errors(template: Object, path: Path) -> ErrorList:
    children = template.get(_COMPOSITES) or ()
    is_childless = not children and not template.get(_GROUPS)
    errors = [field.invalid(path, template.get("name", ""), _CHILDLESS)] if is_childless else []
    below = path.child(_COMPOSITES)
    return errors + [error for i, child in enumerate(children) for error in _childless_errors(child, below.index(i))]


def _as_struct(template: Object) -> Object:
    return {name: template[name] for name in ("name", *GROUP_FIELDS) if name in template}


def _owner_errors(owner: Object, path: Path) -> ErrorList:
    errors = optional_text_errors(owner, "apiGroup", long_name, path) if owner.get("apiGroup") else []
    errors += required_text_errors(owner, "kind", names.path_segment_name, path)
    return errors + required_text_errors(owner, "name", names.path_segment_name, path)


def _template_errors(template: Object, path: Path) -> ErrorList:
    return required_text_errors(template, "name", short_name, path) + group_errors(template, path)
