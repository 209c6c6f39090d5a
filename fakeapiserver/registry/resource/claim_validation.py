"""Validation of device claims, their templates and classes.

Upstream: pkg/apis/resource/validation/validation.go.
"""

import json
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.cel import device
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.pod_resources import is_extended
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.languages.cel.program import Program
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.declared.errors import BOTH_REQUESTS
from fakeapiserver.registry.declared.rules import qualified_name_errors
from fakeapiserver.registry.resource.derived_attributes import DerivedAttributes
from fakeapiserver.registry.resource.device_fields import (
    EFFECTS,
    MAX_CONFIGS,
    MAX_PARAMETERS,
    MAX_REQUESTS,
    SPEC,
    Check,
    driver_errors,
    effects_of,
    fully_qualified_errors,
    label_key_errors,
    list_errors,
    set_errors,
)

_MAX_CONSTRAINTS: Final = 32
_MAX_SELECTORS: Final = 32
_MAX_CHOICES: Final = 8
_MODES: Final = ("All", "ExactCount")
_OPERATORS: Final = ("Equal", "Exists")
_REQUEST_KINDS: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_NO_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'


class DeviceFeatures(Struct, frozen=True):
    """The features of claims: shared devices (DRAConsumableCapacity), attributes that are lists (DRAListTypeAttributes), effects of
    taints; `both`: both of two exclusive fields are validated (until 1.34), and `declares`: if their rules are declared (since 1.37);
    `version`: Kubernetes's."""

    shared: bool = True
    lists: bool = False
    both: bool = False
    effects: Sequence[str] = EFFECTS
    declares: bool = False
    version: str = NEWEST


DEFAULT_FEATURES: Final = DeviceFeatures()


def device_features(features: FeatureGates) -> DeviceFeatures:
    return DeviceFeatures(
        features.enabled("DRAConsumableCapacity"),
        features.enabled("DRAListTypeAttributes"),
        not features.at_least("v1.35"),
        effects_of(features),
        features.at_least("v1.37"),
        features.version,
    )


def claim_spec_errors(spec: Object, path: Path = SPEC, features: DeviceFeatures = DEFAULT_FEATURES) -> ErrorList:
    """The errors in the spec of a claim or of a template's claim."""
    devices, at = spec.get("devices") or {}, path.child("devices")
    requests = request_names(devices)
    derived = DerivedAttributes(devices.get("constraints") or (), partial(_compiled_attribute, features=features))

    def request_errors(request: Object, path: Path) -> ErrorList:
        return _request_errors(request, path, features, derived)

    errors = set_errors(
        devices.get("requests"), MAX_REQUESTS, request_errors, at.child("requests"), lambda row: row.get("name", "")
    )

    def constraint_errors(constraint: Object, path: Path) -> ErrorList:
        return _constraint_errors(constraint, path, requests, features)

    def config_errors(config: Object, path: Path) -> ErrorList:
        return references_errors(config, path, requests) + configuration_errors(config, path)

    errors += list_errors(devices.get("constraints"), _MAX_CONSTRAINTS, constraint_errors, at.child("constraints"))
    errors += list_errors(devices.get("config"), MAX_CONFIGS, config_errors, at.child("config"))
    return errors + derived.total_errors(at)


def request_names(devices: Object) -> set[str]:
    """The names that can be referred to: of requests and of their alternatives. Of requests with the same name the last counts."""
    choices = {
        request.get("name", ""): request.get("firstAvailable") or () for request in devices.get("requests") or ()
    }
    # A reference is looked up part by part, so that nothing refers to a name with a slash in it.
    named = {name: rows for name, rows in choices.items() if "/" not in name}
    parts = {(name, row.get("name", "")) for name, rows in named.items() for row in rows}
    return {*named, *(f"{name}/{part}" for name, part in parts if "/" not in part)}


def _request_errors(request: Object, path: Path, features: DeviceFeatures, derived: DerivedAttributes) -> ErrorList:
    name = request.get("name", "")
    errors = name_errors(name, names.is_dns1123_label, path.child("name"))
    exactly, choices = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not choices:
        return [*errors, field.required(path, _REQUEST_KINDS)]
    excess = exactly is not None and choices
    # where rules are declared, those still hold for both (registry/declared/errors.py)
    checks_both = features.both or features.declares or not excess

    def choice_errors(choice: Object, at: Path) -> ErrorList:
        part = choice.get("name", "")
        found = name_errors(part, names.is_dns1123_label, at.child("name"))
        return found + _wanted_errors(choice, at, features, partial(derived.errors, request=f"{name}/{part}"))

    if choices and checks_both:
        errors += set_errors(
            choices, _MAX_CHOICES, choice_errors, path.child("firstAvailable"), lambda row: row.get("name", "")
        )
    if exactly is not None and checks_both:
        errors += _wanted_errors(exactly, path.child("exactly"), features, partial(derived.errors, request=name))
    if excess:
        errors.append(field.invalid(path, None, BOTH_REQUESTS))
    return errors


def _wanted_errors(wanted: Object, path: Path, features: DeviceFeatures, derived_errors: Check) -> ErrorList:
    """The errors in the class, the selectors, the derived attributes, the number and the tolerations of requested devices."""
    name, at = wanted.get("deviceClassName", ""), path.child("deviceClassName")
    errors = name_errors(name, names.is_dns1123_subdomain, at) if name else [field.required(at)]
    errors += list_errors(
        wanted.get("selectors"), _MAX_SELECTORS, partial(_selector_errors, features=features), path.child("selectors")
    )
    errors += derived_errors(wanted.get("derivedAttributes"), path.child("derivedAttributes"))
    mode, count = wanted.get("allocationMode", ""), wanted.get("count", 0)
    if mode not in _MODES:
        errors.append(field.not_supported(path.child("allocationMode"), mode, _MODES))
    elif mode == "All" and count != 0:
        detail = "must not be specified when allocationMode is 'All'"
        errors.append(field.invalid(path.child("count"), count, detail))
    elif mode == "ExactCount" and count <= 0:
        errors.append(field.invalid(path.child("count"), count, "must be greater than zero"))
    return errors + tolerations_errors(wanted, path, features)


def tolerations_errors(holder: Object, path: Path, features: DeviceFeatures) -> ErrorList:
    """The errors in the tolerations of a request, or of an allocated device."""
    judge = partial(_toleration_errors, effects=features.effects)
    return list_errors(holder.get("tolerations"), -1, judge, path.child("tolerations"))


def _toleration_errors(toleration: Object, path: Path, effects: Sequence[str]) -> ErrorList:
    key, operator, value, effect = (toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
    errors = label_key_errors(key, path.child("key")) if key else []
    if operator == "Exists":
        if value:
            errors.append(field.invalid(path.child("value"), value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += name_errors(value, names.is_valid_label_value, path.child("value"))
    elif not operator:
        errors.append(field.required(path.child("operator")))
    else:
        errors.append(field.not_supported(path.child("operator"), operator, _OPERATORS))
    if effect and effect not in effects:
        errors.append(field.not_supported(path.child("effect"), effect, effects))
    return errors


def _constraint_errors(
    constraint: Object, path: Path, requests: Collection[str], features: DeviceFeatures
) -> ErrorList:
    errors = references_errors(constraint, path, requests)
    given = [name for name in ("matchAttribute", "distinctAttribute") if constraint.get(name) is not None]
    check = qualified_name_errors if features.declares else fully_qualified_errors
    for name in given if features.declares else given[:1]:
        errors += check(constraint[name], path.child(name))
    if given:
        return errors
    if not features.shared:
        return [*errors, field.required(path.child("matchAttribute"))]
    return [*errors, field.required(path, _NO_ATTRIBUTE)]


def references_errors(holder: Object, path: Path, requests: Collection[str]) -> ErrorList:
    def check(name: str, at: Path) -> ErrorList:
        return reference_errors(name, at, requests)

    return set_errors(holder.get("requests"), MAX_REQUESTS, check, path.child("requests"), str)


def reference_errors(name: str, path: Path, requests: Collection[str]) -> ErrorList:
    parts = name.split("/")
    if len(parts) > 2:
        return [field.invalid(path, name, _NO_REQUEST)]
    errors = [error for part in parts for error in name_errors(part, names.is_dns1123_label, path)]
    return errors if name in requests else [*errors, field.invalid(path, name, _NO_REQUEST)]


def configuration_errors(config: Object, path: Path, *, stored: bool = False) -> ErrorList:
    """The errors in configurations. `stored`: parameters that were accepted before may be longer."""
    opaque, at = config.get("opaque"), path.child("opaque")
    if opaque is None:
        return [field.required(at)]
    longest = None if stored else MAX_PARAMETERS
    errors = driver_errors(opaque.get("driver", ""), at.child("driver"))
    return errors + raw_errors(opaque.get("parameters"), at.child("parameters"), longest)


def raw_errors(value: object, path: Path, longest: int | None) -> ErrorList:
    if value is None:
        return [field.required(path)]
    if longest is not None and len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) > longest:
        return [field.too_long(path, longest)]
    detail = Message("must be a valid JSON object", "parameters.object")
    return [] if isinstance(value, dict) else [field.invalid(path, "<value omitted>", detail)]


def _selector_errors(selector: Object, path: Path, features: DeviceFeatures) -> ErrorList:
    """The errors in an expression that selects devices."""
    cel, at = selector.get("cel"), path.child("cel")
    if cel is None:
        return [field.required(at)]
    return _expression_errors(cel.get("expression", ""), at.child("expression"), features)


def _expression_errors(expression: str, path: Path, features: DeviceFeatures) -> ErrorList:
    return _compiled(device.compile_selector, expression, path, features)[1]


def _compiled_attribute(expression: str, path: Path, *, features: DeviceFeatures) -> tuple[Program | None, ErrorList]:
    return _compiled(device.compile_attribute, expression, path, features)


def _compiled(
    compiler: device.Compiler, expression: str, path: Path, features: DeviceFeatures
) -> tuple[Program | None, ErrorList]:
    """Returns the program, if the expression compiles, and the errors."""
    if len(expression.encode()) > device.MAX_LENGTH:
        return None, [field.too_long(path, device.MAX_LENGTH)]
    try:
        program = compiler(expression, shared=features.shared, lists=features.lists, version=features.version)
    except device.NotInstantiated as error:
        return None, [field.internal(path, str(error))]
    except ValueError as error:
        return None, [field.invalid(path, expression, str(error))]
    is_expensive = device.max_cost(program) > device.MAX_COST
    return program, [field.forbidden(path, "too complex, exceeds cost limit")] if is_expensive else []


def class_errors(spec: Object, old: Object | None = None, features: DeviceFeatures = DEFAULT_FEATURES) -> ErrorList:
    """The errors in a class. `old`: the spec before an update, whose configuration is tolerated while it stays the same."""
    stored = old is not None and spec.get("config") == old.get("config")

    def config_errors(config: Object, path: Path) -> ErrorList:
        return configuration_errors(config, path, stored=stored)

    errors = list_errors(
        spec.get("selectors"), _MAX_SELECTORS, partial(_selector_errors, features=features), SPEC.child("selectors")
    )
    errors += list_errors(spec.get("config"), MAX_CONFIGS, config_errors, SPEC.child("config"))
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        path = SPEC.child("extendedResourceName")
        errors.append(field.invalid(path, name, "must be a valid extended resource name"))
    return errors
