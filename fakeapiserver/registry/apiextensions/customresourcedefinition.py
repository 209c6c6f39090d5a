"""CustomResourceDefinitions: defaults, status of a new one, the checks that keep nonsense out, and their two-step end.

Upstream: k8s.io/apiextensions-apiserver/pkg/{apis/apiextensions/v1/defaults.go,registry/customresourcedefinition}.
Validation covers names, versions and structural schemas; the rest comes with the issue on custom resources.
"""

from dataclasses import dataclass
from typing import Any, Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.strategy import Strategy

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
_SPEC: Final = Path("spec")


@dataclass(kw_only=True)
class CustomResourceDefinitionStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = kind + "List"
        spec.setdefault("conversion", {"strategy": "None"})
        webhook = (spec["conversion"] or {}).get("webhook") or {}
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
        _remember_storage_version(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        _remember_storage_version(obj)

    def begin_deletion(self, obj: Object, options: Deletion, now: float) -> None:
        """The finalizer holds it until its instances are gone."""
        meta = obj["metadata"]
        meta["deletionTimestamp"] = rfc3339(now)
        if FINALIZER not in meta.get("finalizers", ()):
            meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        set_condition(obj, "Terminating", "True", "InstanceDeletionPending", message, now)

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        names = spec["names"]
        errors: ErrorList = []
        wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
        if metadata(obj).get("name") != wanted:
            errors.append(
                field.invalid(
                    "metadata.name", metadata(obj).get("name", ""), 'must be spec.names.plural+"."+spec.group'
                )
            )
        for name in ("plural", "singular", "kind", "listKind"):
            if not names.get(name):
                errors.append(field.required(_SPEC.child("names", name)))
        if not spec.get("group"):
            errors.append(field.required(_SPEC.child("group")))
        if spec.get("scope") not in ("Cluster", "Namespaced"):
            errors.append(_scope_error(spec.get("scope", "")))
        return errors + _version_errors(spec.get("versions") or [])

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        for name in ("group", "scope"):
            if obj["spec"].get(name) != old["spec"].get(name):
                errors.append(field.invalid(_SPEC.child(name), obj["spec"].get(name, ""), "field is immutable"))
        return errors + self.validate(obj)


def _scope_error(scope: str) -> field.Error:
    if not scope:
        return field.required(_SPEC.child("scope"))
    return field.not_supported(_SPEC.child("scope"), scope, ["Cluster", "Namespaced"])


def _version_errors(versions: list[Object]) -> ErrorList:
    from fakeapiserver.apimachinery.schema.structural_rules import validate_schema

    path = _SPEC.child("versions")
    errors: ErrorList = []
    stored = [version for version in versions if version.get("storage")]
    if len(stored) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(field.invalid(path, versions, detail))
    for i, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        at = path.index(i).child("schema", "openAPIV3Schema")
        if schema is None:
            errors.append(field.required(at, "schemas are required"))
        else:
            errors += validate_schema(schema, at)
    return errors


def _remember_storage_version(obj: Object) -> None:
    status: dict[str, Any] = dict(obj["status"])
    known = list(status.get("storedVersions") or ())
    for version in obj["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in known:
            known.append(version["name"])
    status["storedVersions"] = known or None
    obj["status"] = status


def condition(obj: Object, kind: str) -> str | None:
    """A condition's status, None when the definition doesn't have it yet."""
    rows = (obj.get("status") or {}).get("conditions") or ()
    return next((row["status"] for row in rows if row["type"] == kind), None)


def set_condition(obj: Object, kind: str, status: str, reason: str, message: str, now: float) -> None:
    """Adds or changes one condition; the transition time moves only with the status. `obj` gets a new status."""
    conditions = [dict(condition) for condition in (obj.get("status") or {}).get("conditions") or ()]
    fresh = {"type": kind, "status": status, "lastTransitionTime": rfc3339(now), "reason": reason, "message": message}
    for i, condition in enumerate(conditions):
        if condition["type"] == kind:
            if condition["status"] == status:
                fresh["lastTransitionTime"] = condition["lastTransitionTime"]
            conditions[i] = fresh
            break
    else:
        conditions.append(fresh)
    obj["status"] = {**(obj.get("status") or {}), "conditions": conditions}
