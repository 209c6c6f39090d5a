"""The declared rules of evictions and of requests for them.

Upstream: pkg/apis/lifecycle/v1alpha1/{zz_generated.validations.go,validation.go}.
"""

from typing import Final

from fakeapiserver.registry.declared.rules import long_name, lowercase_uuid, not_reserved, prefixed_label_key
from fakeapiserver.registry.declared.types import (
    Field,
    Fields,
    between,
    immutable,
    most_characters,
    most_items,
    never,
    never_less,
    one_of,
    required,
    text,
    union,
    unique_names,
)

MOST_RESPONDERS: Final = 11
_MOST_REQUESTERS: Final = 100
_MOST_CONDITIONS: Final = 100
_HIGHEST_PRIORITY: Final = 100_000
_LONGEST_MESSAGE: Final = 4000
_INTENTS: Final = ("Eviction", "Withdrawn")
_STATES: Final = ("Active", "Canceled", "Completed", "Inactive", "Interrupted")

_KEY: Final = Field(stops=[required], checks=[text(prefixed_label_key)])
_POD: Final[Fields] = {
    "name": Field(stops=[required], checks=[text(long_name)]),
    "uid": Field(stops=[required], checks=[text(lowercase_uuid)]),
}
_TARGET: Final = Field(
    stops=[immutable], checks=[union("pod")], fields={"pod": Field(fields=_POD)}, is_always_there=True
)
_SEEN: Final[Fields] = {
    "conditions": Field(stops=[most_items(_MOST_CONDITIONS)]),
    "observedGeneration": Field(stops=[never("cleared")], checks=[between(1, None), never_less], is_pointer=True),
}
_REQUESTER: Final[Fields] = {"name": _KEY, "intent": Field(stops=[required], checks=[one_of(*_INTENTS)])}
_TARGET_RESPONDER: Final[Fields] = {
    "name": _KEY,
    "priority": Field(
        stops=[required, never("cleared", "modified")], checks=[between(0, _HIGHEST_PRIORITY)], is_pointer=True
    ),
    "state": Field(stops=[required], checks=[one_of(*_STATES)]),
}
_RESPONDER: Final[Fields] = {
    "name": _KEY,
    "startTime": Field(stops=[never("cleared", "modified")]),
    "heartbeatTime": Field(),
    "expectedCompletionTime": Field(),
    "completionTime": Field(stops=[never("cleared", "modified")]),
    "message": Field(checks=[most_characters(_LONGEST_MESSAGE)], is_pointer=True),
}


def _list_of(fields: Fields, most: int) -> Field:
    return Field(stops=[most_items(most)], checks=[unique_names(fields)], fields=fields, is_list=True)


EVICTION_REQUEST: Final[Fields] = {
    "spec": Field(
        fields={
            "target": _TARGET,
            "requester": Field(stops=[immutable, required], checks=[text(not_reserved), text(prefixed_label_key)]),
            "intent": Field(stops=[required], checks=[one_of(*_INTENTS)]),
        },
        is_always_there=True,
    ),
    "status": Field(fields=_SEEN, is_always_there=True),
}
EVICTION: Final[Fields] = {
    "spec": Field(fields={"target": _TARGET}, is_always_there=True),
    "status": Field(
        fields={
            **_SEEN,
            "requesters": _list_of(_REQUESTER, _MOST_REQUESTERS),
            "targetResponders": _list_of(_TARGET_RESPONDER, MOST_RESPONDERS),
            "responders": _list_of(_RESPONDER, MOST_RESPONDERS),
        },
        is_always_there=True,
    ),
}
