"""Ingress classes.

Upstream: pkg/registry/networking/ingressclass/strategy.go, pkg/apis/networking/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age

_SPEC: Final = Path("spec")
_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"


class IngressClassStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        errors: ErrorList = [] if spec.get("controller") else [field.required(_SPEC.child("controller"))]
        parameters, path = spec.get("parameters"), _SPEC.child("parameters")
        if parameters is None:
            return errors
        errors += [field.required(path.child(name)) for name in ("kind", "name") if not parameters.get(name)]
        if parameters["scope"] not in ("Cluster", "Namespace"):
            errors.append(field.not_supported(path.child("scope"), parameters["scope"], ("Cluster", "Namespace")))
        elif parameters["scope"] == "Namespace" and not parameters.get("namespace"):
            detail = "`parameters.scope` is set to 'Namespace'"
            errors.append(field.required(path.child("namespace"), detail))
        elif parameters["scope"] == "Cluster" and "namespace" in parameters:
            detail = "`parameters.scope` is set to 'Cluster'"
            errors.append(field.forbidden(path.child("namespace"), detail))
        return errors

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        new, before = obj["spec"].get("controller", ""), old["spec"].get("controller", "")
        return immutable_errors(new, before, _SPEC.child("controller"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, name = obj.get("spec") or {}, metadata(obj).get("name", "")
        if (metadata(obj).get("annotations") or {}).get(_DEFAULT) == "true":
            name += " (default)"
        return [name, spec.get("controller", ""), _parameters(spec.get("parameters")), age(obj, now)]


def _parameters(parameters: Object | None) -> str:
    if parameters is None:
        return NONE
    group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
