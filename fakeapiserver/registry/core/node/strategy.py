"""Nodes: unlike other kinds, born with the status that the client sends.

Upstream: pkg/registry/core/node/strategy.go, pkg/apis/core/v1/{defaults.go,conversion.go},
pkg/apis/core/validation/validation.go (ValidateNode, ValidateNodeUpdate).
"""

import re
from operator import ne
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.ip_addresses import unzoned_network
from fakeapiserver.apimachinery.message import joined
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import choice_errors, cidr_errors, name_errors
from fakeapiserver.registry.core.node.annotations import TAINTS, annotated_taints, avoided_pods_errors
from fakeapiserver.registry.core.pod.resource_requirements_validation import amount_errors
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.core.service.ip_warnings import cidr_warnings
from fakeapiserver.registry.declared.rules import NOTHING
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"
_UNKNOWN: Final = "<unknown>"
# The path at which upstream reports taints.
_TAINTS: Final = Path("metadata.taints")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNIQUE: Final = "taints must be unique by key and effect pair"
_MAX_FEATURE: Final = 253
_FEATURE: Final = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII)
_FEATURE_RULE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_ONCE: Final = 'node updates may not change {} except from "" to valid'


class NodeStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        status = obj.get("status") or {}
        if "allocatable" not in status and "capacity" in status:
            status["allocatable"] = dict(status["capacity"])
        round_up_resources(status, ("capacity", "allocatable"))
        spec = obj.get("spec") or {}
        one, several = spec.get("podCIDR"), spec.get("podCIDRs")
        if one and (not several or several[0] != one):
            spec["podCIDRs"] = [one]
        elif several and not one:
            spec["podCIDR"] = several[0]

    def prepare_for_create(self, obj: Object) -> None:
        (obj.get("spec") or {}).pop("configSource", None)
        (obj.get("status") or {}).pop("config", None)
        if not self.features.enabled("NodeDeclaredFeatures"):  # writes of the status keep them
            (obj.get("status") or {}).pop("declaredFeatures", None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        if "configSource" not in (old.get("spec") or {}):
            (obj.get("spec") or {}).pop("configSource", None)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        if "config" not in (old.get("status") or {}):
            (obj.get("status") or {}).pop("config", None)

    def validate(self, obj: Object) -> ErrorList:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        errors = _annotation_errors(obj) + _taint_errors(spec.get("taints") or [], _TAINTS) + _amount_errors(status)
        swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
        if swap is not None and swap <= 0:
            errors.append(field.invalid("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero"))
        errors += _feature_errors(status.get("declaredFeatures") or [])
        return errors + _pod_cidr_errors(spec.get("podCIDRs") or [])

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate_update(obj, old)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        spec, before, status = obj.get("spec") or {}, old.get("spec") or {}, obj.get("status") or {}
        errors = (
            _annotation_errors(obj) + _amount_errors(status) + _feature_errors(status.get("declaredFeatures") or [])
        )
        errors += _address_errors(status.get("addresses") or [])
        cidrs, assigned = spec.get("podCIDRs") or [], before.get("podCIDRs") or []
        same_length = len(cidrs) == len(assigned)
        changed = sum(map(ne, cidrs, assigned)) if same_length else int(bool(assigned))
        errors += [field.forbidden("spec.podCIDRs", _ONCE.format("podCIDR"))] * changed
        if before.get("providerID") and spec.get("providerID") != before["providerID"]:
            change = "modified" if spec.get("providerID") else "cleared"
            errors.append(field.invalid("spec.providerID", NOTHING, f"field cannot be {change} once set"))
        errors += _taint_errors(spec.get("taints") or [], _TAINTS)  # upstream looks at them twice
        if spec.get("externalID") != before.get("externalID"):
            errors.append(field.forbidden("spec.externalID", "may not be updated"))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        warnings = []
        spec = obj.get("spec") or {}
        if "configSource" in spec:
            warnings.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for i, subnet in enumerate(spec.get("podCIDRs") or ()):
            warnings += cidr_warnings(subnet, Path("spec").child("podCIDRs").index(i))
        return warnings

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def fields_of(self, obj: Object) -> dict[str, str]:
        fields = super().fields_of(obj)
        fields["spec.unschedulable"] = "true" if (obj.get("spec") or {}).get("unschedulable") else "false"
        return fields

    def table_row(self, obj: Object, now: float) -> Cells:
        status = obj.get("status") or {}
        info = status.get("nodeInfo") or {}
        kernel = info.get("kernelVersion") or _UNKNOWN
        if info.get("architecture") and self.features.at_least("v1.36"):
            kernel += f" ({info['architecture']})"
        return [
            metadata(obj).get("name", ""),
            _status(obj, status),
            _roles(obj),
            age(obj, now),
            info.get("kubeletVersion", ""),
            _address(status, "InternalIP"),
            _address(status, "ExternalIP"),
            info.get("osImage") or _UNKNOWN,
            kernel,
            info.get("containerRuntimeVersion") or _UNKNOWN,
        ]


def _status(obj: Object, status: Object) -> str:
    ready = [c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"]
    readiness = ("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"
    return f"{readiness},SchedulingDisabled" if (obj.get("spec") or {}).get("unschedulable") else readiness


def _roles(obj: Object) -> str:
    labels: dict[str, str] = metadata(obj).get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE, ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: Object, kind: str) -> str:
    return next((a.get("address", "") for a in status.get("addresses") or () if a.get("type") == kind), NONE)


def _amount_errors(status: Object) -> ErrorList:
    return [
        error
        for which in ("capacity", "allocatable")
        for name, amount in (status.get(which) or {}).items()
        for error in amount_errors(name, amount, Path("status").child(which, name))
    ]


def _feature_errors(features: list[str]) -> ErrorList:
    """The errors in declared features: each must be unique, and they must be sorted as bytes."""
    errors: ErrorList = []
    for i, name in enumerate(features):
        at, before = Path("status.declaredFeatures").index(i), features[i - 1] if i else ""
        if i and name == before:
            errors.append(field.duplicate(at, name))
        elif name.encode() < before.encode():
            errors.append(field.invalid(at, name, "list must be sorted alphabetically"))
        if len(name.encode()) > _MAX_FEATURE:
            detail = f"invalid feature name {go_quote(name)}: must be no more than {_MAX_FEATURE} characters"
            errors.append(field.invalid(at, name, detail))
        elif not _FEATURE.fullmatch(name):
            errors.append(field.invalid(at, name, f"invalid feature name {go_quote(name)}: {_FEATURE_RULE}"))
    return errors


def _address_errors(addresses: list[Object]) -> ErrorList:
    errors: ErrorList = []
    repeated = field.repetitions((each.get("type"), each.get("address")) for each in addresses)
    for i, address in enumerate(addresses):
        if i in repeated:
            go_address = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            errors.append(field.duplicate(Path("status.addresses").index(i), go_address))
    return errors


def _pod_cidr_errors(cidrs: list[str]) -> ErrorList:
    """The errors in spec.podCIDRs: one range, or one of each IP family."""
    path = Path("spec.podCIDRs")
    errors = [error for i, cidr in enumerate(cidrs) for error in cidr_errors(cidr, path.index(i))]
    if len(cidrs) < 2:
        return errors
    families = [_family(cidr) for cidr in cidrs]
    if None in families:
        i = families.index(None)
        problem = f"invalid CIDR[{i}]: <nil> (invalid CIDR address: {cidrs[i]})"
        errors.append(field.internal(path, f"invalid PodCIDRs. failed to check with dual stack with error:{problem}"))
    if None in families or len(set(families)) < 2 or len(cidrs) > 2:
        errors.append(field.invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


def _family(cidr: str) -> int | None:
    """The IP family of a range, 4 or 6; None if the text isn't a CIDR."""
    try:
        return unzoned_network(cidr).version if "/" in cidr else None
    except ValueError:
        return None


def _annotation_errors(obj: Object) -> ErrorList:
    taints, errors = annotated_taints(obj)
    return errors + _taint_errors(taints, Path("metadata.annotations").child(TAINTS)) + avoided_pods_errors(obj)


def _taint_errors(taints: list[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        at, key, effect = path.index(i), taint.get("key", ""), taint.get("effect", "")
        errors += name_errors(key, names.is_qualified_name, at.child("key"))
        if problems := names.is_valid_label_value(taint.get("value", "")):
            errors.append(field.invalid(at.child("value"), taint["value"], joined(";", problems)))
        errors += choice_errors(effect, _EFFECTS, at.child("effect"))
        if (key, effect) in seen:
            go_taint = {
                "Key": key,
                "Value": taint.get("value", ""),
                "Effect": effect,
                "TimeAdded": taint.get("timeAdded"),
            }
            errors.append(field.duplicate(at, go_taint, _UNIQUE))
        seen.add((key, effect))
    return errors
