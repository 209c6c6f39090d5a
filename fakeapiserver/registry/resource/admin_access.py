"""Who may claim devices that others use: claims in namespaces that say so.

Upstream: pkg/registry/resource/utils.go, AuthorizedForAdmin and AuthorizedForAdminStatus.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.admission.interfaces import Getter
from fakeapiserver.apimachinery.errors import new_invalid
from fakeapiserver.apimachinery.field import Path, forbidden
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.store import WriteRequest

GROUP: Final = "resource.k8s.io"
_LABEL: Final = "resource.kubernetes.io/admin-access"
_DETAIL: Final = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"


class AdminAccess(Struct, frozen=True):
    """The guard of claims and their templates, asked when an object is found valid."""

    objects: Getter
    of_valid = True

    async def check(self, request: WriteRequest, obj: Object, old: Object | None) -> None:
        """StatusError 422."""
        path = _asked(obj, old, status=request.subresource == "status")
        if path is None:
            return
        meta = metadata(obj)
        namespace = self.objects.get("namespaces", "", meta.get("namespace", ""))
        labels = metadata(namespace).get("labels") if namespace is not None else None
        if (labels or {}).get(_LABEL) != "true":
            raise new_invalid(GroupKind(GROUP, obj["kind"]), meta.get("name", ""), [forbidden(path, _DETAIL)])


def _asked(obj: Object, old: Object | None, *, status: bool) -> Path | None:
    """Where access is asked for anew: by a new object's first request that does, or by what was allocated."""
    if status:
        path = Path("status").child("allocation", "devices", "results")
        first = _first(_results(obj))
        if first is None or _first(_results(old or {})) is not None:
            return None
        return path.index(first).child("adminAccess")
    if old is not None:
        return None
    spec = obj["spec"].get("spec") or {} if obj["kind"] == "ResourceClaimTemplate" else obj["spec"]
    requests = (spec.get("devices") or {}).get("requests") or ()
    first = _first([request.get("exactly") or {} for request in requests])
    return None if first is None else Path("spec").child("devices", "requests").index(first).child("adminAccess")


def _results(obj: Object) -> Sequence[Object]:
    allocation = (obj.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def _first(rows: Sequence[Object]) -> int | None:
    return next((i for i, row in enumerate(rows) if row.get("adminAccess")), None)
