"""Ingress classes.

Upstream: pkg/registry/networking/ingressclass/strategy.go, pkg/apis/networking/{v1/defaults.go,validation/validation.go}.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors, required_segment_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age

_SPEC: Final = Path("spec")
_MAX_CONTROLLER: Final = 250
_SCOPES: Final = ("Cluster", "Namespace")
_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"


class IngressClassStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        controller, path = spec.get("controller", ""), _SPEC.child("controller")
        errors: ErrorList = []
        if len(controller.encode()) > _MAX_CONTROLLER:
            errors.append(field.too_long(path, _MAX_CONTROLLER))
        errors += names.validate_domain_prefixed_path(controller, path)
        if (parameters := spec.get("parameters")) is not None:
            errors += _parameters_errors(parameters, _SPEC.child("parameters"))
        return errors

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        new, before = obj["spec"].get("controller", ""), old["spec"].get("controller", "")
        return immutable_errors(new, before, _SPEC.child("controller"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec, name = obj.get("spec") or {}, metadata(obj).get("name", "")
        if (metadata(obj).get("annotations") or {}).get(_DEFAULT) == "true" and self.features.at_least("v1.36"):
            name += " (default)"
        return [name, spec.get("controller", ""), _parameters(spec.get("parameters")), age(obj, now)]


def _parameters_errors(parameters: Object, path: Path) -> ErrorList:
    errors = reference_errors(parameters, path)
    scope, namespace, at = parameters["scope"], parameters.get("namespace"), path.child("namespace")
    if scope not in _SCOPES:
        errors.append(field.not_supported_text(path.child("scope"), scope, _SCOPES))
    elif scope == "Namespace":
        if namespace is None:
            errors.append(field.required(at, "`parameters.scope` is set to 'Namespace'"))
        else:
            errors += name_errors(namespace, names.is_dns1123_label, at)
    elif namespace is not None:
        errors.append(field.forbidden(at, "`parameters.scope` is set to 'Cluster'"))
    return errors


def reference_errors(reference: Object, path: Path) -> ErrorList:
    """The errors in a reference to an object by group, kind and name."""
    errors: ErrorList = []
    if (group := reference.get("apiGroup")) is not None:
        errors += name_errors(group, names.is_dns1123_subdomain, path.child("apiGroup"))
    for name in ("kind", "name"):
        errors += required_segment_errors(reference.get(name, ""), path.child(name))
    return errors


def _parameters(parameters: Object | None) -> str:
    if parameters is None:
        return NONE
    group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
