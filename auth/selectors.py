"""The selectors of a list, watch or deletion of a collection, as authorizers see them.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/authorization.go, k8s.io/kubernetes/pkg/registry/authorization/util/helpers.go
(AuthorizeWithSelectors).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import fields, labels, names
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.go.quote import go_quote

_LABEL_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_FIELD_OPERATORS: Final = {"In": "=", "NotIn": "!="}
_TOLD: Final = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}


class Parsed(Struct, frozen=True):
    """`error` is upstream's text for what could not be read; `requirements` are the others: all of them must hold, so that
    leaving one out asks for more than is wanted, never for less."""

    requirements: tuple[Any, ...] = ()
    error: str = ""


class Selectors(Struct, frozen=True, dict=True):
    """`field_selector` and `label_selector` are texts as a query has them, or the attributes of a SubjectAccessReview.
    Parsed when an authorizer looks."""

    field_selector: str | Mapping[str, Any] = ""
    label_selector: str | Mapping[str, Any] = ""

    @cached_property
    def fields(self) -> Parsed:
        return _parsed(self.field_selector, fields.parse, _field_requirement)

    @cached_property
    def labels(self) -> Parsed:
        return _parsed(self.label_selector, labels.parse, _label_requirement)

    def read(self) -> None:
        """Parses both, which may take long."""
        _ = self.fields, self.labels

    def as_attributes(self) -> dict[str, Any]:
        """`fieldSelector` and `labelSelector` of a SubjectAccessReview's resourceAttributes, without what is empty."""
        attributes: dict[str, Any] = {}
        wanted = [
            {"key": r.field, "operator": _TOLD[r.operator], "values": [r.value]} for r in self.fields.requirements
        ]
        if wanted:
            attributes["fieldSelector"] = {"requirements": wanted}
        wanted = [
            {"key": r.key, "operator": _TOLD[r.operator]} | ({"values": list(r.values)} if r.values else {})
            for r in self.labels.requirements
            if r.operator in _TOLD
        ]
        if wanted:
            attributes["labelSelector"] = {"requirements": wanted}
        return attributes


def _parsed(selector: str | Mapping[str, Any], parse: Any, requirement: Any) -> Parsed:
    if isinstance(selector, str):
        return _from_text(selector, parse)
    if requirements := selector.get("requirements"):
        return _from_requirements(requirements, requirement)
    return _from_text(selector.get("rawSelector") or "", parse)


def _from_text(text: str, parse: Any) -> Parsed:
    try:
        return Parsed(tuple(parse(text).requirements)) if text else Parsed()
    except ValueError as error:
        return Parsed(error=str(error))


def _from_requirements(requirements: Sequence[Mapping[str, Any]], read: Any) -> Parsed:
    parsed, errors = [], []
    for requirement in requirements:
        try:
            parsed.append(read(requirement))
        except ValueError as error:
            errors.append(str(error))
    return Parsed(tuple(parsed), "; ".join(errors))


def _field_requirement(wanted: Mapping[str, Any]) -> fields.Requirement:
    operator, values = wanted.get("operator", ""), wanted.get("values") or ()
    if len(values) > 1:
        raise ValueError("fieldSelectors do not yet support multiple values")
    if operator in ("Exists", "DoesNotExist"):
        raise ValueError(f"fieldSelectors do not yet support {operator}")
    if operator not in _FIELD_OPERATORS:
        raise ValueError(f"{go_quote(operator)} is not a valid field selector operator")
    if not values:
        raise ValueError(f"fieldSelectors {'in' if operator == 'In' else 'not in'} must have one value")
    return fields.Requirement(wanted.get("key", ""), _FIELD_OPERATORS[operator], values[0])


def _label_requirement(wanted: Mapping[str, Any]) -> labels.Requirement:
    operator, values, key = wanted.get("operator", ""), wanted.get("values") or (), wanted.get("key", "")
    if operator not in _LABEL_OPERATORS:
        raise ValueError(f"{go_quote(operator)} is not a valid label selector operator")
    problems = [
        *names.is_qualified_name(key),
        *(text for value in values for text in names.is_valid_label_value(value)),
    ]
    if problems:
        raise ValueError(f"{Path('key')}: Invalid value: {go_quote(key)}: {'; '.join(problems)}")
    return labels.Requirement(key, _LABEL_OPERATORS[operator], tuple(values))
