"""Requests to write a resource's objects again, in the version that they are stored in now.

Upstream: pkg/registry/storagemigration/storagemigration/strategy.go, pkg/apis/storagemigration/validation/validation.go.
"""

import re
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import conditions_form
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_CONDITIONS: Final = _STATUS.child("conditions")
_IS_REVISION: Final = re.compile("[1-9][0-9]*")
_STATES: Final = ("Running", "Failed", "Succeeded")


class StorageVersionMigrationStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        target, path = obj["spec"].get("resource") or {}, _SPEC.child("resource")
        resource, group = target.get("resource", ""), target.get("group", "")
        errors: ErrorList = []
        if not resource:
            errors.append(field.required(path.child("resource"), "resource is required to be set"))
        elif problems := names.is_dns1035_label(resource):
            errors.append(field.invalid(path.child("resource"), resource, ",".join(problems)))
        if group and (problems := names.is_dns1123_subdomain(group)):
            errors.append(field.invalid(path.child("group"), group, ",".join(problems)))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["spec"] == old["spec"]:
            return []
        target = obj["spec"].get("resource") or {}
        go_target = {"Resource": {name: target.get(name, "") for name in ("group", "resource")}}
        return [field.invalid(_SPEC, go_target, IMMUTABLE)]

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, before, path = obj.get("status") or {}, old.get("status") or {}, _STATUS.child("resourceVersion")
        revision, known = status.get("resourceVersion", ""), before.get("resourceVersion", "")
        conditions = status.get("conditions")
        errors: ErrorList = []
        if revision and not _IS_REVISION.fullmatch(revision):
            errors.append(field.invalid(path, revision, f"resource version is not well formed: {revision}"))
        errors += conditions_errors(conditions or (), _CONDITIONS)
        if known and known != revision:
            errors.append(field.invalid(path, revision, IMMUTABLE))
        if _is_true(status, "Succeeded") and _is_true(status, "Failed"):
            detail = "Both success and failed conditions cannot be true at the same time"
            errors.append(field.invalid(_CONDITIONS, conditions_form(conditions or ()), detail))
        for state, word in (("Succeeded", "Success"), ("Failed", "Failed")):
            if _is_true(before, state) and not _is_true(status, state):
                detail = f"{word} condition cannot be set to false once it is true"
                errors.append(field.invalid(_CONDITIONS, conditions_form(conditions or ()), detail))
        return errors

    def table_row(self, obj: Object, now: float) -> Cells:
        target = (obj.get("spec") or {}).get("resource") or {}
        resource_cell = ".".join(filter(None, (target.get("resource", ""), target.get("group", ""))))
        conditions = (obj.get("status") or {}).get("conditions") or ()
        true = [row["type"] for row in conditions if row.get("status") == "True" and row.get("type") in _STATES]
        return [metadata(obj).get("name", ""), resource_cell, true[-1] if true else "Unknown"]


def _is_true(status: Object, kind: str) -> bool:
    """Reports whether the first condition of the type is true."""
    statuses = [row.get("status") for row in status.get("conditions") or () if row.get("type") == kind]
    return statuses[:1] == ["True"]
