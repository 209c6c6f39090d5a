"""The history that controllers keep of earlier specs and phases, which says nothing about where an operator has arrived."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object

_HISTORY: Final = frozenset(("deployment.kubernetes.io/revision-history",))
# The members of a status in which custom resources keep their phase.
_PHASES: Final = ("phase", "state", "status")


def left_out(state: Mapping[str, Object]) -> dict[str, Object]:
    """The state without old ReplicaSets, revisions, the claims of a StatefulSet's former replicas, and the phases that custom resources
    went through."""
    claims = {claim for title, obj in state.items() if title.startswith("statefulsets ") for claim in _claims(obj)}
    templates = {claim.rpartition("-")[0] for claim in claims}
    return {
        title: _without_log(_without_history(_without_progress(obj) if title.startswith("deployments ") else obj))
        for title, obj in state.items()
        if not _is_old(title, obj) and not _is_former_claim(title, claims, templates)
    }


def _is_old(title: str, obj: Object) -> bool:
    resource = title.partition(" ")[0]
    is_unused = resource == "replicasets" and obj.get("spec", {}).get("replicas") == 0
    return resource == "controllerrevisions" or (is_unused and bool(obj["metadata"].get("ownerReferences")))


def _claims(stateful_set: Object) -> Iterator[str]:
    """The names of its claims, in its namespace."""
    spec, meta = stateful_set.get("spec", {}), stateful_set["metadata"]
    for template in spec.get("volumeClaimTemplates") or ():
        for number in range(spec.get("replicas", 1)):
            yield f"{meta.get('namespace', '')}/{template['metadata']['name']}-{meta['name']}-{number}"


def _is_former_claim(title: str, claims: set[str], templates: set[str]) -> bool:
    resource, _, name = title.partition(" ")
    base, _, number = name.rpartition("-")
    return resource == "persistentvolumeclaims" and number.isdigit() and base in templates and name not in claims


def _without_progress(obj: Object) -> Object:
    """The Deployment without the reason of its progress, which depends on its earlier specs."""
    status = obj.get("status") or {}
    conditions = [
        {key: value for key, value in each.items() if key not in ("reason", "message")}
        if (each["type"], each["status"]) == ("Progressing", "True")
        else each
        for each in status.get("conditions") or ()
    ]
    return {**obj, "status": {**status, "conditions": conditions}} if conditions else obj


def _without_history(obj: Object) -> Object:
    meta = obj["metadata"]
    marks = meta.get("annotations")
    if not marks or _HISTORY.isdisjoint(marks):
        return obj
    left: dict[str, Any] = {key: value for key, value in marks.items() if key not in _HISTORY}
    others = {key: value for key, value in meta.items() if key != "annotations"}
    return {**obj, "metadata": {**others, **({"annotations": left} if left else {})}}


def _without_log(obj: Object) -> Object:
    """The object without conditions that are a log of its phases: a type occurs twice, or is the phase itself."""
    status = obj.get("status")
    if not isinstance(status, Mapping) or not isinstance(conditions := status.get("conditions"), list):
        return obj
    types = [str(each.get("type")) for each in conditions if isinstance(each, Mapping)]
    if len(types) == len({*types}) and not any(status.get(name) in types for name in _PHASES if status.get(name)):
        return obj
    return {**obj, "status": {key: value for key, value in status.items() if key != "conditions"}}
