"""Steps for operators that do not evaluate all their operands: &&, ||, ?: and or."""

from typing import Any

from fakeapiserver.languages.cel.errors import CelError, no_such_overload
from fakeapiserver.languages.cel.interpreter.steps import Frame, Step
from fakeapiserver.languages.cel.values import Optional


def logical_step(terms: list[Step], *, stop: bool) -> Step:
    def logical(frame: Frame) -> bool:
        failure: CelError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is stop:
                return bool(value)
            if type(value) is not bool:
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return not stop

    return logical


def conditional_step(condition: Step, then: Step, otherwise: Step) -> Step:
    def conditional(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise no_such_overload()

    return conditional


def or_step(optional: Step, other: Step, *, whole: bool, strict: bool) -> Step:
    """`strict`: a value that isn't an optional is an error, as since cel-go 0.29; before, it is the result."""

    def either(frame: Frame) -> Any:
        value = optional(frame)
        if not isinstance(value, Optional):
            if strict:
                raise no_such_overload()
            return value
        if value.has_value:
            return value if whole else value.value
        return other(frame)

    return either
