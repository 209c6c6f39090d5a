"""API services: which server serves a group version.

Upstream: k8s.io/kube-aggregator/pkg/{apis/apiregistration/{v1/defaults.go,validation/validation.go},registry/apiservice}.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy, copy_field
from fakeapiserver.registry.generic.strategy_facts import NameFunction
from fakeapiserver.registry.generic.table_cells import age

_SPEC: Final = Path("spec")
_HIGHEST: Final = {"groupPriorityMinimum": 20_000, "versionPriority": 1_000}
_CONDITION_STATUSES: Final = ("True", "False", "Unknown")
_KEPT_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_PORT_RANGE: Final = "port is not valid: must be between 1 and 65535, inclusive"


class APIServiceStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        if (service := obj["spec"].get("service")) is not None:
            service.setdefault("port", 443)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}
        if obj["spec"].get("service") is None:
            obj["status"]["conditions"] = [_local(metadata(obj)["creationTimestamp"])]

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keeps less of the metadata than other kinds do."""
        obj["spec"] = old["spec"]
        for name in _KEPT_METADATA:
            copy_field(name, metadata(old), metadata(obj))

    def table_row(self, obj: Object, now: float) -> Cells:
        service = (obj.get("spec") or {}).get("service")
        service_cell = f"{service.get('namespace', '')}/{service.get('name', '')}" if service is not None else "Local"
        conditions = (obj.get("status") or {}).get("conditions") or ()
        available = next((c for c in conditions if c.get("type") == "Available"), {"status": "Unknown"})
        status, reason = available.get("status", ""), available.get("reason")
        available_cell = f"{status} ({reason})" if reason and status != "True" else status
        return [metadata(obj).get("name", ""), service_cell, available_cell, age(obj, now)]

    def name_rule(self, obj: Object) -> NameFunction:
        """The rule for names, which are version and group: `v1.example.com`."""
        expected = f"{obj['spec'].get('version', '')}.{obj['spec'].get('group', '')}"
        detail = f'must be `spec.version+"."+spec.group`: {go_quote(expected)}'
        return lambda name, prefix: names.path_segment_name(name) or ([] if name == expected else [detail])

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        errors = _version_errors(spec)
        for name, highest in _HIGHEST.items():
            if not 0 < spec.get(name, 0) <= highest:
                detail = f"must be positive and less than {highest}"
                errors.append(field.invalid(_SPEC.child(name), spec.get(name, 0), detail))
        service = spec.get("service")
        return errors + (_local_errors(spec) if service is None else _service_errors(spec, service))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        for i, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
            if (status := condition.get("status", "")) not in _CONDITION_STATUSES:
                path = Path("status").child("conditions").index(i).child("status")
                errors.append(field.not_supported(path, status, _CONDITION_STATUSES))
        return errors


def _local(now: str) -> Object:
    return {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }


def _version_errors(spec: Object) -> ErrorList:
    group, version = spec.get("group", ""), spec.get("version", "")
    if group:
        errors = name_errors(group, names.is_dns1123_subdomain, _SPEC.child("group"))
    elif version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        errors = [field.required(_SPEC.child("group"), detail)]
    else:
        errors = []
    return errors + name_errors(version, names.is_dns1035_label, _SPEC.child("version"))


def _local_errors(spec: Object) -> ErrorList:
    errors: ErrorList = []
    if bundle := spec.get("caBundle"):
        size_text = f"{len(bundle) * 3 // 4 - bundle.count('=')} bytes"
        errors.append(field.invalid(_SPEC.child("caBundle"), size_text, "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        detail = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(field.invalid(_SPEC.child("insecureSkipTLSVerify"), True, detail))
    return errors


def _service_errors(spec: Object, service: Object) -> ErrorList:
    path = _SPEC.child("service")
    errors = [field.required(path.child(name)) for name in ("namespace", "name") if not service.get(name)]
    if not 1 <= service["port"] <= 65535:
        errors.append(field.invalid(path.child("port"), service["port"], _PORT_RANGE))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        detail = "may not be true if caBundle is present"
        errors.append(field.invalid(_SPEC.child("insecureSkipTLSVerify"), True, detail))
    return errors
