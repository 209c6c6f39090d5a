"""Judges a spec: an object that is changed to it is like one created with it, changing back leads back, and `Ready` means ready."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.sweep import states
from fakeapiserver.sweep.states import Difference, State

_READY: Final = ("Ready", "Available")


def effects(before: State, after: State, title: str, noise: frozenset[str], ignore: Sequence[str]) -> list[Difference]:
    """The other differences after a change of the object `title`: those of its status, and of other objects."""
    return [
        each
        for each in states.differences(before, after, noise, ignore)
        if each.title != title or each.path.startswith("status")
    ]


def too_early(state: State, title: str, kind: str) -> Iterator[tuple[str, str]]:
    """The workloads of a custom resource that aren't ready although it says so, each with a sentence about it."""
    said = [name for name in _READY if title in state and _is_true(state[title], name)]
    if not said:
        return
    name = title.rpartition("/")[2]
    for other, workload in state.items():
        if _belongs(workload, kind, name) and _lacks_replicas(other.partition(" ")[0], workload):
            ready = (workload.get("status") or {}).get("readyReplicas") or 0
            wanted = workload["spec"].get("replicas", 1)
            yield other, f"{title} says that it is {said[0]}, but {other} has {ready} of {wanted} replicas"


def unnoticed(before: State, after: State, title: str) -> Iterator[tuple[str, str]]:
    """The fields `observedGeneration` of a custom resource that were current before a change, and aren't any more."""
    if title not in before or title not in after:
        return
    now = dict(_generations("status", after[title].get("status")))
    for path, seen in _generations("status", before[title].get("status")):
        if (seen, now.get(path)) == ("current", "behind"):
            yield f"{title} {path}", f"{title} is never taken note of: {path} stays behind"


def _generations(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The paths of fields `observedGeneration`, and their values."""
    if isinstance(value, list):
        value = {str(each.get("type", number)): each for number, each in enumerate(value) if isinstance(each, dict)}
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        if name == "observedGeneration":
            yield f"{path}.{name}", member
        else:
            yield from _generations(f"{path}.{name}", member)


def _lacks_replicas(resource: str, workload: Object) -> bool:
    """A Deployment may lack a few of them, as its strategy says."""
    if resource == "deployments":
        return not _is_true(workload, "Available")
    ready = (workload.get("status") or {}).get("readyReplicas") or 0
    return resource == "statefulsets" and ready < workload["spec"].get("replicas", 1)


def _is_true(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        isinstance(each, dict) and (each.get("type"), each.get("status")) == (condition, "True") for each in conditions
    )


def _belongs(obj: Object, kind: str, name: str) -> bool:
    return any(
        (each.get("kind"), each.get("name")) == (kind, name) for each in obj["metadata"].get("ownerReferences") or ()
    )
