"""Leader election: the records by which the replicas of an operator choose their leader. Neither plans nor comparisons consider them."""

from collections.abc import Iterable, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object, annotations
from fakeapiserver.evidence.entry import RequestEntry

# Older clients keep the record in an annotation of a ConfigMap or of Endpoints.
_RECORD: Final = "control-plane.alpha.kubernetes.io/leader"
_KEEPERS: Final = frozenset(("configmaps", "endpoints"))
_WRITES: Final = ("create", "update", "patch")


def is_record(obj: Object) -> bool:
    """Reports whether the object, which is no Lease, is a leader election's record."""
    return _RECORD in annotations(obj)


def concerns(entry: RequestEntry) -> bool:
    """Reports whether the request is one for a leader election's record."""
    if entry.resource == "leases":
        return True
    if entry.resource not in _KEEPERS or entry.verb not in _WRITES:
        return False
    body = entry.body
    return isinstance(body, dict) and is_record(body)


def records_of(requests: Iterable[RequestEntry]) -> Sequence[tuple[str, str, str]]:
    """Returns the resources, namespaces and names of the records that the requests wrote."""
    wrote = (entry for entry in requests if entry.verb in _WRITES and entry.status < 300 and concerns(entry))
    return sorted({(entry.resource, entry.namespace, entry.name) for entry in wrote})


def is_other_write(entry: RequestEntry) -> bool:
    """Reports whether the request changes an object that is neither a record nor an Event."""
    return entry.changed and entry.resource != "events" and not concerns(entry)
