"""CustomResourceDefinitions: defaults, status of a new one, the checks that keep nonsense out, and their two-step end.

Upstream: k8s.io/apiextensions-apiserver/pkg/{apis/apiextensions/v1/defaults.go,registry/customresourcedefinition}.
"""

from dataclasses import dataclass
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.names import name_is_dns_subdomain
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.registry.apiextensions.crd_validation import (
    change_errors,
    names_errors,
    spec_errors,
    stored_version_errors,
)
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.strategy import NameFunction, Strategy

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


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

    def name_rule(self, obj: Object) -> NameFunction:
        names = obj["spec"]["names"]
        wanted = f"{names.get('plural', '')}.{obj['spec'].get('group', '')}"

        def rule(name: str, prefix: bool) -> list[str]:
            problems = name_is_dns_subdomain(name, prefix)
            return problems if name == wanted else [*problems, 'must be spec.names.plural+"."+spec.group']

        return rule

    def validate(self, obj: Object) -> ErrorList:
        status = obj["status"]
        errors = spec_errors(obj["spec"])
        return errors + _status_errors(status) + _stored_errors(obj)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = spec_errors(obj["spec"])
        errors += change_errors(obj["spec"], old["spec"], _is_established(old))
        return errors + _status_errors(obj["status"]) + _stored_errors(obj)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return _status_errors(obj["status"])


def _status_errors(status: Object) -> ErrorList:
    return names_errors(status.get("acceptedNames") or {}, Path("status").child("acceptedNames"))


def _stored_errors(obj: Object) -> ErrorList:
    return stored_version_errors(obj["status"].get("storedVersions"), obj["spec"].get("versions"))


def _is_established(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(found["type"] == "Established" and found["status"] == "True" for found in conditions)


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
