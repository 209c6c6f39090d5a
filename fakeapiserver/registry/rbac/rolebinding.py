"""Role bindings and cluster role bindings.

Upstream: pkg/registry/rbac/rolebinding/strategy.go, pkg/apis/rbac/{v1/defaults.go,validation/validation.go}.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_GROUP: Final = "rbac.authorization.k8s.io"
_ROLE_REF: Final = Path("roleRef")
_IMMUTABLE: Final = Message(IMMUTABLE, "roleRef.immutable")
_KINDS: Final = ("ServiceAccount", "User", "Group")


class RoleBindingStrategy(Strategy, kw_only=True):
    """`roles` are the kinds that a binding may refer to."""

    roles: tuple[str, ...]

    def default(self, obj: Object, version: str) -> None:
        reference = obj["roleRef"]
        if not reference.get("apiGroup"):
            reference["apiGroup"] = _GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _GROUP

    def validate(self, obj: Object) -> ErrorList:
        reference, errors = obj["roleRef"], ErrorList()
        if reference["apiGroup"] != _GROUP:
            errors.append(field.not_supported_text(_ROLE_REF.child("apiGroup"), reference["apiGroup"], (_GROUP,)))
        if reference["kind"] not in self.roles:
            errors.append(field.not_supported_text(_ROLE_REF.child("kind"), reference["kind"], self.roles))
        if reference["name"]:
            errors += name_errors(reference["name"], names.path_segment_name, _ROLE_REF.child("name"))
        else:
            errors.append(field.required(_ROLE_REF.child("name")))
        namespaced = "Role" in self.roles
        for i, subject in enumerate(obj.get("subjects") or ()):
            errors += _subject_errors(subject, Path("subjects").index(i), namespaced)
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["roleRef"] == old["roleRef"]:
            return []
        return [field.invalid(_ROLE_REF, internal_form(obj["roleRef"], "RoleRef"), _IMMUTABLE)]

    def table_row(self, obj: Object, now: float) -> Cells:
        reference, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
        named = {kind: [_shown(subject) for subject in subjects if subject.get("kind") == kind] for kind in _KINDS}
        return [
            metadata(obj).get("name", ""),
            f"{reference.get('kind', '')}/{reference.get('name', '')}",
            age(obj, now),
            *(", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")),
        ]


def _shown(subject: Object) -> str:
    name = str(subject.get("name", ""))
    return f"{subject.get('namespace', '')}/{name}" if subject["kind"] == "ServiceAccount" else name


def _subject_errors(subject: Object, path: Path, namespaced: bool) -> ErrorList:
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    errors: ErrorList = [] if subject.get("name") else [field.required(path.child("name"))]
    if kind not in _KINDS:
        return [*errors, field.not_supported_text(path.child("kind"), kind, _KINDS)]
    if kind == "ServiceAccount" and subject.get("name"):
        errors += name_errors(subject["name"], names.is_dns1123_subdomain, path.child("name"))
    expected_group = "" if kind == "ServiceAccount" else _GROUP
    if group != expected_group:
        errors.append(field.not_supported_text(path.child("apiGroup"), group, (expected_group,)))
    if kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
        errors.append(field.required(path.child("namespace")))
    return errors
