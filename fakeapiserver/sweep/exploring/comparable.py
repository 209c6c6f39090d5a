"""States for the comparison of specs, without what depends on the way to a spec: times in annotations, and hashes of templates."""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.sweep.states import State

_TIME: Final = "<time>"
# Labels of pods that follow from the whole template of their owner.
_HASHES: Final = frozenset(("controller-revision-hash", "pod-template-hash"))


def comparable(state: State, without_spec: str = "") -> State:
    """The state without objects that follow from others: endpoints, and ReplicaSets and their pods, whose names have hashes.
    `without_spec`: the title of an object of which only the status is kept."""
    return {
        title: {**plain, "spec": None} if title == without_spec else plain
        for title, plain in ((title, _plain(obj)) for title, obj in state.items() if not _follows(title, obj))
    }


def _follows(title: str, obj: Object) -> bool:
    if title.startswith(("endpoints ", "endpointslices")):
        return True
    owners = obj["metadata"].get("ownerReferences") or ()
    return bool(owners) and (
        title.startswith("replicasets ")
        or (title.startswith("pods ") and any(each.get("kind") == "ReplicaSet" for each in owners))
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        members = {name: _plain(member) for name, member in value.items()}
        for name, left in (("annotations", _without_times), ("labels", _without_hashes)):
            if isinstance(members.get(name), dict):
                members[name] = left(members[name])
                if not members[name]:
                    del members[name]
        return members
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _without_times(annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in annotations.items() if value != _TIME}


def _without_hashes(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in labels.items() if name not in _HASHES}
