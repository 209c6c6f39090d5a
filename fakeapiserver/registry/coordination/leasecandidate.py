"""Candidates for a lease, of which the server elects one.

Upstream: pkg/registry/coordination/leasecandidate/strategy.go, pkg/apis/coordination/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names, semantic_version
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_SPEC: Final = Path("spec")
_OLDEST: Final = "OldestEmulationVersion"
_NO_VERSION: Final = "must be a valid semantic version"
_NEEDED: Final = f"must be specified when `strategy` is '{_OLDEST}'"


class LeaseCandidateStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        spec, strategy = obj["spec"], obj["spec"].get("strategy", "")
        emulated, binary = (spec.get(name, "") for name in ("emulationVersion", "binaryVersion"))
        versions = [semantic_version.parse(text) for text in (emulated, binary)]
        errors = [] if spec.get("leaseName") else [field.required(_SPEC.child("leaseName"))]
        if emulated and versions[0] is None:
            errors.append(field.invalid(_SPEC.child("emulationVersion"), emulated, _NO_VERSION))
        path = _SPEC.child("binaryVersion")
        if not binary:
            errors.append(field.required(path))
        elif versions[1] is None:
            errors.append(field.invalid(path, binary, _NO_VERSION))
        # What is no version counts as 0.0.0.
        lowest = semantic_version.ZERO
        if emulated and binary and (versions[1] or lowest) < (versions[0] or lowest):
            errors.append(field.invalid(path, binary, "must be greater than or equal to `emulationVersion`"))
        if not strategy:
            return [*errors, field.required(_SPEC.child("strategy"))]
        if strategy == _OLDEST and (versions[0] or lowest) == lowest:
            errors.append(field.required(_SPEC.child("emulationVersion"), _NEEDED))
        return errors + _strategy_errors(strategy, _SPEC.child("strategy", "strategy"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        new, before = (item["spec"].get("leaseName", "") for item in (obj, old))
        return self.validate(obj) + immutable_errors(new, before, _SPEC.child("leaseName"))

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        cells = (spec.get(name, "") for name in ("leaseName", "binaryVersion", "emulationVersion"))
        return [metadata(obj).get("name", ""), *cells, age(obj, now)]


def _strategy_errors(strategy: str, path: Path) -> ErrorList:
    if "/" in strategy:
        return name_errors(strategy, names.is_qualified_name, path)
    return [] if strategy == _OLDEST else [field.not_supported(path, strategy, (_OLDEST,))]
