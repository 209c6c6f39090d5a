"""Roles and cluster roles.

Upstream: pkg/registry/rbac/{role,clusterrole}/strategy.go, pkg/apis/rbac/validation/validation.go.
"""

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.generic.label_selector import label_selector_errors
from fakeapiserver.registry.generic.strategy import Strategy


class RoleStrategy(Strategy, kw_only=True):
    """`namespaced` roles are about resources only, and aggregate nothing."""

    namespaced: bool

    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = []
        for i, rule in enumerate(obj.get("rules") or ()):
            errors += _rule_errors(rule, Path("rules").index(i), namespaced=self.namespaced)
        if not self.namespaced and "aggregationRule" in obj:
            errors += _aggregation_errors(obj["aggregationRule"], Path("aggregationRule").child("clusterRoleSelectors"))
        return errors


def _rule_errors(rule: Object, path: Path, *, namespaced: bool) -> ErrorList:
    errors: ErrorList = []
    if not rule.get("verbs"):
        errors.append(field.required(path.child("verbs"), "verbs must contain at least one value"))
    if urls := rule.get("nonResourceURLs"):
        at = path.child("nonResourceURLs")
        if namespaced:
            errors.append(field.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(field.invalid(at, urls, detail))
        return errors
    if not rule.get("apiGroups"):
        detail = "resource rules must supply at least one api group"
        errors.append(field.required(path.child("apiGroups"), detail))
    if not rule.get("resources"):
        errors.append(field.required(path.child("resources"), "resource rules must supply at least one resource"))
    return errors


def _aggregation_errors(rule: Object, path: Path) -> ErrorList:
    selectors = rule.get("clusterRoleSelectors") or ()
    if not selectors:
        return [field.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    errors: ErrorList = []
    for i, selector in enumerate(selectors):
        if wrong := label_selector_errors(selector, path.index(i)):
            errors += [*wrong, field.invalid(path.index(i), None, "invalid label selector.")]
    return errors


def rbac_name_errors(name: str, prefix: bool) -> list[str]:
    """The errors in a name. One that will be generated is checked like a whole name (upstream: ValidateRBACName)."""
    return names.path_segment_name(name)
