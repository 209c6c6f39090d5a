"""Label and field selectors of a request, as one predicate over what storage keeps beside the bytes.

Upstream: k8s.io/apiserver/pkg/storage/selection_predicate.go, k8s.io/apimachinery/pkg/runtime/conversion.go.
"""

from collections.abc import Callable
from functools import lru_cache

from fakeapiserver.apimachinery import fields, labels
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apis.conversion import FIELD_LABELS
from fakeapiserver.endpoints.options import ListOptions
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.storage.interface import StoredObject

Predicate = Callable[[StoredObject], bool]

_parse_labels = lru_cache(maxsize=512)(labels.parse)
_parse_fields = lru_cache(maxsize=512)(fields.parse)


def predicate(options: ListOptions, info: RequestInfo, scope: RequestScope) -> Predicate | None:
    """None selects everything. StatusError 400 for selectors that are none, and for fields this kind doesn't select by."""
    label_selector = _labels(options.label_selector)
    field_selector = _fields(options.field_selector, scope)
    if info.name and not info.subresource:
        field_selector = _with_name(field_selector, info.name)
    if label_selector is None and field_selector is None:
        return None
    return lambda stored: (
        (label_selector is None or label_selector.matches(stored.index.labels))
        and (field_selector is None or field_selector.matches(stored.index.fields))
    )


def _labels(text: str) -> labels.Selector | None:
    if not text:
        return None
    try:
        selector = _parse_labels(text)
    except ValueError as error:
        raise new_bad_request(str(error)) from None
    return None if selector.empty else selector


def _fields(text: str, scope: RequestScope) -> fields.Selector | None:
    if not text:
        return None
    try:
        selector = _parse_fields(text)
    except ValueError as error:
        raise new_bad_request(str(error)) from None
    assert scope.store is not None
    renamed = FIELD_LABELS.get(scope.gvk)
    known = renamed or scope.store.strategy.field_labels()
    for requirement in selector.requirements:
        if requirement.field not in known:
            raise new_bad_request(_unknown_field(requirement.field, scope))
    return selector.renamed(renamed) if renamed else selector


def _with_name(selector: fields.Selector | None, name: str) -> fields.Selector:
    """A watch on one object's path is a watch of the collection with its name as the selector."""
    named = f"metadata.name={name}"
    return _parse_fields(f"{selector},{named}" if selector is not None else named)


def _unknown_field(name: str, scope: RequestScope) -> str:
    assert scope.store is not None
    if scope.kind.custom or scope.store.strategy.selectable_fields:
        return f"field label not supported: {name}"
    return f'{go_quote(name)} is not a known field selector: only "metadata.name", "metadata.namespace"'
