"""Finds out whether a write may give the controllers of kube-controller-manager something to do.

Most tests of clients write config maps, Secrets, custom resources and roles, which no controller acts on by itself: as long as nothing
else is written, their controllers needn't start.
"""

from typing import Final

from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.keys import ROOT, resource_of
from fakeapiserver.storage.memory import MemoryStorage

_LONG: Final = 3600.0
# Roles that are aggregated, and bundles of kube-apiserver's authority, have controllers that run from the start.
_QUIET: Final = frozenset(
    (
        "clusterrolebindings",
        "clusterroles",
        "clustertrustbundles",
        "configmaps",
        "events",
        "flowschemas",
        "ipaddresses",
        "leases",
        "mutatingwebhookconfigurations",
        "priorityclasses",
        "prioritylevelconfigurations",
        "rolebindings",
        "roles",
        "secrets",
        "servicecidrs",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)
# Owners and deletions are the garbage collector's, these names and types those of other controllers.
_MARKS: Final = (
    b'"ownerReferences"',
    b'"deletionTimestamp"',
    b'"kube-root-ca.crt"',
    b'"cluster-info"',
    b"kubernetes.io/service-account-token",
    b"bootstrap.kubernetes.io/token",
)


def concerns_controllers(stored: StoredObject) -> bool:
    """Reports whether a controller may act on a state of this object. Keys of custom resources, definitions and APIServices have a group in
    front; the server itself looks after definitions and APIServices."""
    resource = resource_of(stored.key)
    is_quiet = resource in _QUIET or "." in resource.partition("/")[0]
    return not is_quiet or any(mark in stored.value for mark in _MARKS)


async def first(storage: MemoryStorage, revision: int) -> None:
    """Returns at the first write after `revision` that may concern a controller, and when all watches end, as with a restored state."""
    watcher = storage.watch(f"{ROOT}/", revision=revision, predicate=concerns_controllers)
    try:
        while await watcher.next_batch(_LONG) == []:
            pass
    finally:
        watcher.close()
