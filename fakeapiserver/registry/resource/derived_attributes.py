"""Validation of the attributes that a claim derives from devices by expressions (DRADerivedAttributes).

Upstream: validateDeviceDerivedAttributes of pkg/apis/resource/validation/validation.go.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.cel import device
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.languages.cel.program import Program
from fakeapiserver.registry.declared.rules import qualified_name_errors
from fakeapiserver.registry.resource.device_fields import list_errors, set_errors

_MAX_ATTRIBUTES: Final = 32
_UNUSED: Final = (
    "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"
)
_TOTAL: Final = "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
# In the place of a request's name: the attributes that constraints of all requests name.
_ALL: Final = ""


class ExpressionErrors(Protocol):
    """Compiles an expression with the claim's features; returns the program, if it compiles, and the errors."""

    def __call__(self, expression: str, path: Path) -> tuple[Program | None, ErrorList]: ...


class DerivedAttributes:
    """Validates the derived attributes of the requests of one claim, and adds up what their expressions cost."""

    def __init__(self, constraints: Iterable[Object], compile_expression: ExpressionErrors) -> None:
        self._compile = compile_expression
        self._cost = 0
        # the name of a request, or `request/alternative` -> the attributes that its constraints name
        self._constrained: dict[str, set[str]] = defaultdict(set)
        for constraint in constraints:
            name = constraint.get("matchAttribute")
            name = constraint.get("distinctAttribute") if name is None else name
            if name is not None:
                for request in constraint.get("requests") or (_ALL,):
                    self._constrained[request].add(name)

    def errors(self, attributes: Sequence[Object] | None, path: Path, request: str) -> ErrorList:
        """The errors in the attributes of a request, or of an alternative, `request/alternative`."""
        if not attributes:
            return []

        def check(attribute: Object, at: Path) -> ErrorList:
            return self._attribute_errors(attribute, at, request)

        errors = set_errors(attributes, -1, check, path, lambda row: row.get("name", ""))
        return errors + list_errors(attributes, _MAX_ATTRIBUTES, _declared_errors, path)

    def total_errors(self, path: Path) -> ErrorList:
        """The error of a claim all of whose expressions together are too expensive."""
        return [field.forbidden(path, _TOTAL)] if self._cost > device.MAX_COST else []

    def _attribute_errors(self, attribute: Object, path: Path, request: str) -> ErrorList:
        name, expression = attribute.get("name", ""), attribute.get("expression", "")
        errors: ErrorList = []
        targets = (_ALL, request, request.partition("/")[0])
        if name and not any(name in self._constrained.get(target, ()) for target in targets):
            errors.append(field.invalid(path.child("name"), name, _UNUSED))
        if not expression:
            return errors
        program, expression_errors = self._compile(expression, path.child("expression"))
        if program is not None:
            self._cost += device.max_cost(program)
        return errors + expression_errors


def _declared_errors(attribute: Object, path: Path) -> ErrorList:
    """The errors of rules that the type declares."""
    errors = [field.required(path.child(key)) for key in ("name", "expression") if not attribute.get(key)]
    name = attribute.get("name", "")
    return errors + qualified_name_errors(name, path.child("name")) if name else errors
