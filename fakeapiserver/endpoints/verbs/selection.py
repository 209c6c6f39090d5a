"""Label and field selectors of a request, as one predicate over what storage keeps beside the bytes.

Upstream: k8s.io/apiserver/pkg/storage/selection_predicate.go, k8s.io/apimachinery/pkg/runtime/conversion.go, and listOpts in
k8s.io/apiserver/pkg/endpoints/handlers/get.go.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeapiserver.apimachinery import fields, labels
from fakeapiserver.apimachinery import sharding as sharding_module
from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.options import ListOptions
from fakeapiserver.storage.interface import Index, StoredObject, WithLabels

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.sharding import ShardSelector

Predicate = Callable[[StoredObject], bool]
_NAME = "metadata.name"
_NAMESPACE = "metadata.namespace"
_EQUAL = ("=", "==")


def predicate(options: ListOptions, info: RequestInfo, scope: RequestScope) -> Predicate | None:
    """Returns the predicate of a list or watch; None selects everything.

    Raises StatusError 400 for fields that the kind can't be selected by, and for a selector that contradicts the
    name in the path.
    """
    label_selector, field_selector = options.label_selector, _fields(options, info, scope)
    sharding = shard(options, scope)
    if label_selector is None and field_selector is None and sharding is None:
        return None
    if label_selector is not None and field_selector is None and sharding is None:
        return _with_labels(label_selector)
    has_labels = None if label_selector is None else labels.matcher(label_selector)
    return lambda stored: (
        (has_labels is None or has_labels(stored.index.labels))
        and (field_selector is None or field_selector.matches(stored.index.fields))
        and (sharding is None or sharding.matches(_sharded_by(sharding, stored.index)))
    )


def _with_labels(selector: labels.Selector) -> Predicate:
    """The predicate of a label selector: where labels have to equal values, one that a storage can look up."""
    wanted: dict[str, str] = {}
    is_exact = bool(selector.requirements) and not selector.nothing
    for requirement in selector.requirements:
        value = requirement.values[0] if requirement.operator in _EQUAL else None
        is_exact = is_exact and value is not None and wanted.setdefault(requirement.key, value) == value
    if is_exact:
        return WithLabels(wanted)
    matches = labels.matcher(selector)
    return lambda stored: matches(stored.index.labels)


def shard(options: ListOptions, scope: RequestScope) -> "ShardSelector | None":
    """The requested shard. StatusError 400 for an invalid shard selector, where upstream answers 500."""
    if not options.shard_selector or scope.store is None:
        return None
    if not scope.store.strategy.features.enabled("ShardedListAndWatch"):
        return None

    try:
        return sharding_module.parse(options.shard_selector)
    except ValueError as problem:
        raise new_bad_request(f"invalid shard selector: {problem}") from None


def _sharded_by(selector: "ShardSelector", index: Index) -> str:
    return index.uid if selector.key.endswith("uid") else index.fields.get(_NAMESPACE, "")


def _fields(options: ListOptions, info: RequestInfo, scope: RequestScope) -> fields.Selector | None:
    selector = options.field_selector
    if selector is not None:
        selector = _converted(selector, scope)
    if not info.name:
        return selector
    if selector is None:
        return fields.Selector((fields.Requirement(_NAME, "=", info.name),))
    if selector.requires_exact_match(_NAME) != info.name:
        raise new_bad_request("fieldSelector metadata.name doesn't match requested name")
    return selector


def _converted(selector: fields.Selector, scope: RequestScope) -> fields.Selector:
    """The selector with this version's field labels replaced by those of the stored object."""
    known = scope.field_labels
    for requirement in selector.requirements:
        if requirement.field not in known:
            raise new_bad_request(scope.dialect.unknown_field(requirement.field, scope))
    return selector.renamed(known)
