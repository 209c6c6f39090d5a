"""Validation of node selectors, by labels and by fields.

Upstream: pkg/apis/core/validation/validation.go (ValidateNodeSelector).
"""

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import name_errors

_BAD_OPERATOR = "not a valid selector operator"


def node_selector_errors(selector: Object, path: Path) -> ErrorList:
    terms = selector.get("nodeSelectorTerms") or ()
    at = path.child("nodeSelectorTerms")
    if not terms:
        return [field.required(at, "must have at least one node selector term")]
    return [error for i, term in enumerate(terms) for error in node_term_errors(term, at.index(i))]


def node_term_errors(term: Object, path: Path, *, any_value: bool = False) -> ErrorList:
    """The errors in a NodeSelectorTerm. `any_value`: values that no node's label can have are allowed, as in preferred terms."""
    errors: ErrorList = []
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _label_errors(requirement, path.child("matchExpressions").index(i), any_value)
    for i, requirement in enumerate(term.get("matchFields") or ()):
        errors += _field_errors(requirement, path.child("matchFields").index(i))
    return errors


def _label_errors(requirement: Object, path: Path, any_value: bool) -> ErrorList:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    at = path.child("values")
    errors: ErrorList = []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(field.required(at, "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(field.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(field.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(field.invalid(path.child("operator"), field.json_text(operator), _BAD_OPERATOR))
    errors += name_errors(requirement.get("key", ""), names.is_qualified_name, path.child("key"))
    for i, value in enumerate(() if any_value else values):
        errors += name_errors(value, names.is_valid_label_value, at.index(i))
    return errors


def _field_errors(requirement: Object, path: Path) -> ErrorList:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values") or ()
    at = path.child("values")
    errors: ErrorList = []
    if operator not in ("In", "NotIn"):
        errors.append(field.invalid(path.child("operator"), field.json_text(operator), _BAD_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(field.required(at, detail))
    if key != "metadata.name":
        return [*errors, field.invalid(path.child("key"), key, "not a valid field selector key")]
    for i, value in enumerate(values):
        errors += name_errors(value, names.is_dns1123_subdomain, at.index(i))
    return errors
