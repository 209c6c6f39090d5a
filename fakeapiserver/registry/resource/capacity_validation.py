"""Validation of devices' capacities, and of the amounts of them that claims can request.

Upstream: validateMultiAllocatableDeviceCapacity of pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import Quantity, parse
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.registry.resource.device_fields import set_errors

_MAX_OPTIONS: Final = 10
_MAX_INT64: Final = 2**63 - 1


class CapacityRules(Struct, frozen=True):
    """The rules of a version. `bounded`: steps are positive, numbers fit in 64 bits, and capacities that stay the same aren't checked
    again, as since 1.37; `fractional`: ranges may have fractions (DRAFractionalCapacityRange)."""

    bounded: bool = True
    fractional: bool = False


DEFAULT_RULES: Final = CapacityRules()


def capacity_rules(features: FeatureGates) -> CapacityRules:
    return CapacityRules(features.at_least("v1.37"), features.enabled("DRAFractionalCapacityRange"))


def capacity_errors(capacity: Object, path: Path) -> ErrorList:
    """The errors in a capacity of a device that isn't shared."""
    if capacity.get("requestPolicy") is None:
        return []
    return [field.forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true")]


def shared_capacity_errors(capacity: Object, path: Path, rules: CapacityRules) -> ErrorList:
    """The errors in a capacity of a shared device, and in the amounts that claims can request."""
    policy, at = capacity.get("requestPolicy"), path.child("requestPolicy")
    if policy is None:
        return []
    values, span, default = (policy.get(name) for name in ("validValues", "validRange", "default"))
    if values and span is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [field.forbidden(at, detail)]
    for name, given in (("validValues", bool(values)), ("validRange", span is not None)):
        if given and default is None:
            return [field.required(at.child("default"), f"required when {name} is defined")]
    most = parse(str(capacity.get("value", "0")))
    if values:
        options = [parse(value) for value in values]
        return _options_errors(options, parse(default), most, at.child("validValues"), rules)
    return [] if span is None else _range_errors(span, parse(default), most, at.child("validRange"), rules)


def _options_errors(
    options: Sequence[Quantity], default: Quantity, most: Quantity, path: Path, rules: CapacityRules
) -> ErrorList:
    errors: ErrorList = []
    for i, (one, following) in enumerate(pairwise(options), 1):
        if one > following:
            errors.append(field.invalid(path.index(i), str(following), "values must be sorted in ascending order"))

    def check(option: Quantity, at: Path) -> ErrorList:
        detail = f"option is larger than capacity value: {most}"
        return [field.invalid(at, str(option), detail)] if option > most else []

    def key(option: Quantity) -> str:
        return str(float(option.amount)) if rules.fractional and not _is_whole(option) else str(option.value)

    errors += set_errors(options, _MAX_OPTIONS, check, path, key)
    # Options too many to be looked at hold no default either.
    if len(options) > _MAX_OPTIONS or default not in options:
        detail = "default value is not valid according to the requestPolicy"
        errors.append(field.invalid(path, str(default), detail))
    return errors


def _range_errors(span: Object, default: Quantity, most: Quantity, path: Path, rules: CapacityRules) -> ErrorList:
    if span.get("min") is None:
        return [field.required(path.child("min"), "required when validRange is defined")]
    given = {name: parse(span[name]) for name in ("min", "max", "step") if span.get(name) is not None}
    low, high = given["min"], given.get("max")
    numbers = {"default": default, **given}
    errors: ErrorList = []

    def report(name: str, value: Quantity, detail: str) -> None:
        errors.append(field.invalid(path.child(name), str(value), detail))

    if low > most:
        report("min", low, f"min is larger than capacity value: {most}")
    if default < low:
        report("default" if rules.bounded else "min", default, f"default is less than min: {low}")
    if high is not None and low > high:
        report("max", low, f"min is larger than max: {high}")
    if high is not None and high > most:
        report("max", high, f"max is larger than capacity value: {most}")
    if high is not None and default > high:
        report("default" if rules.bounded else "max", default, f"default is more than max: {high}")
    has_fractions = rules.fractional and not all(map(_is_whole, numbers.values()))
    if has_fractions and (unsafe := [name for name, number in numbers.items() if not _has_millis(number)]):
        for name in unsafe:
            report(name, numbers[name], "value cannot be represented as a milli value")
        return errors
    return errors + _step_errors(numbers, most, path, rules, has_fractions=has_fractions)


def _step_errors(
    numbers: Mapping[str, Quantity], most: Quantity, path: Path, rules: CapacityRules, *, has_fractions: bool
) -> ErrorList:
    """The errors in the steps of a range: they must lead to its end and to the default."""
    low, step, at = numbers["min"], numbers.get("step"), path.child("step")
    if step is None:
        return []
    if rules.bounded and step.amount <= 0:
        return [field.invalid(at, str(step), "must be greater than zero")]
    errors: ErrorList = []
    if (reached := low + step) > most:
        errors.append(field.invalid(at, str(step), f"one step {reached} is larger than capacity value: {most}"))
    if rules.bounded and not has_fractions and (problems := _int64_problems(numbers)):
        return errors + [field.invalid(path.child(name), str(numbers[name]), text) for name, text in problems.items()]
    for end in (numbers[name] for name in ("default", "max") if name in numbers):
        if not _is_reached(end, low, step, has_fractions=has_fractions):
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            errors.append(field.invalid(at, str(end), detail))
    return errors


def _is_whole(number: Quantity) -> bool:
    return number.amount.denominator == 1


def _has_millis(number: Quantity) -> bool:
    """Reports whether 64 bits hold a number's thousandths."""
    millis = number.amount * 1000
    return millis.denominator == 1 and abs(millis) <= _MAX_INT64


def _int64_problems(numbers: Mapping[str, Quantity]) -> dict[str, str]:
    """Returns the problems of numbers that 64 bits don't hold, by the fields' names."""
    problems = {name: "must be greater than or equal to 0" for name, number in numbers.items() if number.amount < 0}
    large = [name for name, number in numbers.items() if number.amount > _MAX_INT64]
    problems |= dict.fromkeys(large, f"must not be larger than {_MAX_INT64}")
    return {name: problems[name] for name in numbers if name in problems}


def _is_reached(end: Quantity, low: Quantity, step: Quantity, *, has_fractions: bool) -> bool:
    """Reports whether steps from the lowest number lead to this one; without fractions, numbers are rounded up."""
    if has_fractions:
        return (end.amount - low.amount) % step.amount == 0
    return not step.value or (end.value - low.value) % step.value == 0
