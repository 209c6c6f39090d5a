"""Admission policies in CEL and their bindings.

Upstream: pkg/registry/admissionregistration/{mutating,validating}admissionpolicy{,binding}/strategy.go,
pkg/apis/admissionregistration/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.admissionregistration.policy_validation import (
    binding_errors,
    mutating_policy_errors,
    policy_status_errors,
    validating_policy_errors,
)
from fakeapiserver.registry.admissionregistration.webhook_configuration import (
    default_matching,
    default_scopes,
    reserved_name_errors,
    reserved_name_warnings,
)
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import UNSET, age

_SPEC: Final = Path("spec")


class AdmissionPolicyStrategy(Strategy, kw_only=True):
    """`rules` names the list that a policy consists of; `has_status` whether the kind reports type checks."""

    rules: str
    has_status: bool

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        spec.setdefault("failurePolicy", "Fail")
        if (constraints := spec.get("matchConstraints")) is not None:
            _default_match_resources(constraints)

    def prepare_for_create(self, obj: Object) -> None:
        if self.has_status:
            obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        return self.validate_update(obj, {}) + reserved_name_errors(obj, self.features)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if self.has_status:
            return validating_policy_errors(metadata(obj).get("name", ""), obj["spec"], _SPEC, self.features.version)
        return mutating_policy_errors(obj["spec"], _SPEC, self.features.version)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return policy_status_errors(obj.get("status") or {}, Path("status"))

    def warnings_on_create(self, obj: Object) -> list[str]:
        return reserved_name_warnings(obj, self.features, new=True)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return reserved_name_warnings(obj, self.features, new=False)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        kind = spec.get("paramKind")
        param = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
        return [metadata(obj).get("name", ""), len(spec.get(self.rules) or ()), param, age(obj, now)]


class AdmissionPolicyBindingStrategy(Strategy, kw_only=True):
    """`acts`: bindings have validationActions, which say what happens if their policy fails."""

    acts: bool

    def default(self, obj: Object, version: str) -> None:
        if (resources := obj["spec"].get("matchResources")) is not None:
            _default_match_resources(resources)
        if version == "v1alpha1" and (reference := obj["spec"].get("paramRef")) is not None:
            reference.setdefault("parameterNotFoundAction", "Deny")

    def validate(self, obj: Object) -> ErrorList:
        return self.validate_update(obj, {}) + reserved_name_errors(obj, self.features)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return binding_errors(obj["spec"], _SPEC, acts=self.acts)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return reserved_name_warnings(obj, self.features, new=True)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return reserved_name_warnings(obj, self.features, new=False)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        reference = spec.get("paramRef") or {}
        param, selector = UNSET, reference.get("selector")
        if reference.get("name"):
            param = f"{reference.get('namespace') or '*'}/{reference['name']}"
        elif selector is not None:
            param = labels.go_text(selector)
        return [metadata(obj).get("name", ""), spec.get("policyName", ""), param, age(obj, now)]


def _default_match_resources(resources: Object) -> None:
    default_matching(resources)
    default_scopes(resources.get("resourceRules"))
    default_scopes(resources.get("excludeResourceRules"))
