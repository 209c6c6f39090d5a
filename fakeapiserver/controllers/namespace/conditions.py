"""The conditions of a namespace's deletion (upstream: pkg/controller/namespace/deletion/status_condition_utils.go)."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.discovery import GroupDiscoveryFailedError


class _Told(NamedTuple):
    """A condition's status, reason and message."""

    status: str
    reason: str
    message: str


# What is said when there is nothing to complain of; in the order in which conditions are added.
_FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": _Told("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": _Told(
        "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"
    ),
    "NamespaceDeletionContentFailure": _Told(
        "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    ),
    "NamespaceContentRemaining": _Told("False", "ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": _Told(
        "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    ),
}


class Findings(Struct):
    """The results of one try to empty a namespace.

    remaining: how many objects of a resource are still there; finalizers: how many of these wait for each finalizer.
    Both are reported only if the try got as far as `counted`.
    """

    discovery_error: Exception | None = None
    errors: list[Exception] = field(default_factory=list)
    remaining: Counter[GroupResource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    counted: bool = False

    def failures(self) -> Sequence[Exception]:
        """Everything that went wrong."""
        return [*([self.discovery_error] if self.discovery_error else []), *self.errors]

    def conditions(self) -> dict[str, _Told]:
        """Returns the conditions by type."""
        told = dict(_FINE)
        if self.discovery_error is not None:
            told["NamespaceDeletionDiscoveryFailure"] = _Told(
                "True", "DiscoveryFailed", _discovery_failed(self.discovery_error)
            )
        if self.errors:
            each = ", ".join(sorted(str(error) for error in self.errors))
            told["NamespaceDeletionContentFailure"] = _Told(
                "True",
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(self.errors)} remaining: {each}",
            )
        if self.counted and self.remaining:
            # a resource of the legacy group ends in a dot
            each = ", ".join(
                sorted(
                    f"{resource}.{group} has {number} resource instances"
                    for (group, resource), number in self.remaining.items()
                )
            )
            told["NamespaceContentRemaining"] = _Told(
                "True", "SomeResourcesRemain", f"Some resources are remaining: {each}"
            )
        if self.counted and self.finalizers:
            each = ", ".join(
                sorted(f"{name} in {number} resource instances" for name, number in self.finalizers.items())
            )
            told["NamespaceFinalizersRemaining"] = _Told(
                "True",
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {each}",
            )
        return told


def with_findings(namespace: Object, findings: Findings, now: str) -> Object | None:
    """The namespace with conditions that say what was found; None when they do already. `now`: RFC 3339."""
    before = namespace["status"].get("conditions") or ()
    conditions = {condition["type"]: condition for condition in before}
    changed = False
    for kind, told in findings.conditions().items():
        old = conditions.get(kind)
        if old is not None and _Told(old["status"], old.get("reason", ""), old.get("message", "")) == told:
            continue
        since = old["lastTransitionTime"] if old is not None and old["status"] == told.status else now
        conditions[kind] = {"type": kind, "lastTransitionTime": since, **told._asdict()}
        changed = True
    return {**namespace, "status": {**namespace["status"], "conditions": [*conditions.values()]}} if changed else None


def _discovery_failed(error: Exception) -> str:
    if isinstance(error, GroupDiscoveryFailedError):
        return f"Discovery failed for some groups, {len(error.failed)} failing: {error}"
    return str(error)
