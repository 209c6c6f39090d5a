"""metav1.LabelSelector in objects of several groups: validated, matched and printed.

Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go.
"""

from fakeapiserver.apimachinery import field, labels, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import selector_form
from fakeapiserver.registry.generic.table_cells import NONE

IMMUTABLE = "field is immutable"


def label_selector_errors(selector: Object | None, path: Path) -> ErrorList:
    """The errors in a selector (ValidateLabelSelector); none if it is absent."""
    if selector is None:
        return []
    errors = names.validate_labels(selector.get("matchLabels") or {}, path.child("matchLabels"))
    for i, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += _requirement_errors(requirement, path.child("matchExpressions").index(i))
    return errors


def _requirement_errors(requirement: Object, path: Path) -> ErrorList:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    errors: ErrorList = []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(field.required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(field.forbidden(path.child("values"), detail))
    else:
        errors.append(field.invalid(path.child("operator"), field.json_text(operator), "not a valid selector operator"))
    key = requirement.get("key", "")
    errors += [field.invalid(path.child("key"), key, problem) for problem in names.is_qualified_name(key)]
    for i, value in enumerate(values):
        at = path.child("values").index(i)
        errors += [field.invalid(at, value, problem) for problem in names.is_valid_label_value(value)]
    return errors


def parsed(selector: Object | None) -> labels.Selector | None:
    """The selector to match with; None if it is invalid (where LabelSelectorAsSelector fails)."""
    if label_selector_errors(selector, Path()):
        return None
    return labels.from_label_selector(selector)


def is_empty(selector: Object) -> bool:
    return not (selector.get("matchLabels") or selector.get("matchExpressions"))


def format_label_selector(selector: Object | None) -> str:
    """The selector as a table cell: `<none>` if it selects nothing or everything (FormatLabelSelector)."""
    parsed_selector = parsed(selector)
    return "<error>" if parsed_selector is None else str(parsed_selector) or NONE


def immutable_errors(new: object, old: object, path: Path) -> ErrorList:
    """The error for a changed field that can't change (ValidateImmutableField)."""
    return [] if new == old else [field.invalid(path, new, IMMUTABLE)]


def immutable_selector_errors(new: Object | None, old: Object | None, path: Path) -> ErrorList:
    """The errors of `immutable_errors` for a selector, which is shown in Go's order."""
    return [] if new == old else [field.invalid(path, shown_selector(new), IMMUTABLE)]


def shown_selector(selector: Object | None) -> Object | None:
    """A selector as messages show it."""
    return None if selector is None else selector_form(selector)
