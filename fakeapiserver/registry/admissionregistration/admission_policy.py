"""Admission policies in CEL and their bindings.

Upstream: pkg/registry/admissionregistration/{mutating,validating}admissionpolicy{,binding}/strategy.go,
pkg/apis/admissionregistration/v1/defaults.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.admissionregistration.webhook_configuration import default_matching, default_scopes
from fakeapiserver.registry.core.table_cells import UNSET, age
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class AdmissionPolicyStrategy(Strategy):
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

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        kind = spec.get("paramKind")
        shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
        return [metadata(obj).get("name", ""), len(spec.get(self.rules) or ()), shown, age(obj, now)]


@dataclass(kw_only=True)
class AdmissionPolicyBindingStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        if (resources := obj["spec"].get("matchResources")) is not None:
            _default_match_resources(resources)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        reference = spec.get("paramRef") or {}
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}" if reference.get("name") else UNSET
        return [metadata(obj).get("name", ""), spec.get("policyName", ""), shown, age(obj, now)]


def _default_match_resources(resources: Object) -> None:
    default_matching(resources)
    default_scopes(resources.get("resourceRules"))
    default_scopes(resources.get("excludeResourceRules"))
