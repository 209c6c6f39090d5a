"""Access to devices: who may claim devices in use, and who may write a claim's allocation and device statuses.

Upstream: pkg/registry/resource/utils.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fakeapiserver.apimachinery.field import ErrorList, Path, forbidden
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, UserInfo
from fakeapiserver.registry.generic.write_request import Guard, WriteRequest
from fakeapiserver.registry.resource.claim_status_validation import device_id

GROUP: Final = "resource.k8s.io"
_STATUS: Final = Path("status")
_LABEL: Final = "resource.kubernetes.io/admin-access"
_LABEL_OF_1_33: Final = "resource.k8s.io/admin-access"
_ACCOUNT: Final = "system:serviceaccount:"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"


class ClaimAccess(Guard):
    """The guard of claims and their templates. `authorizer` decides who may write the status of devices; None: every user. `version`
    is the server's."""

    def __init__(self, objects: ObjectReader, authorizer: Authorizer | None, version: str = NEWEST) -> None:
        self._objects, self._authorizer = objects, authorizer
        self._label = _LABEL if version >= "v1.34" else _LABEL_OF_1_33

    async def errors(
        self, request: WriteRequest, obj: Object, old: Object | None, errors_so_far: ErrorList
    ) -> ErrorList:
        of_status = request.subresource == "status"
        errors = self._admin_errors(obj, old, status=of_status)
        if self._authorizer is not None and of_status:
            status, before = obj.get("status") or {}, (old or {}).get("status") or {}
            errors += await self._binding_errors(request, self._authorizer, status, before)
            if status.get("allocation") is not None:
                errors += await self._driver_errors(request, self._authorizer, status, before)
        return errors + errors_so_far

    def _admin_errors(self, obj: Object, old: Object | None, *, status: bool) -> ErrorList:
        path = _asked(obj, old, status=status)
        if path is None:
            return []
        namespace = self._objects.get("namespaces", "", metadata(obj).get("namespace", ""))
        labels = metadata(namespace).get("labels") if namespace is not None else None
        if (labels or {}).get(self._label) == "true":
            return []
        detail = f"admin access to devices requires the `{self._label}: true` label on the containing namespace"
        return [forbidden(path, detail)]

    async def _binding_errors(
        self, request: WriteRequest, authorizer: Authorizer, status: Object, old: Object
    ) -> ErrorList:
        same = status.get("allocation") == old.get("allocation")
        if same and (status.get("reservedFor") or []) == (old.get("reservedFor") or []):
            return []
        problem = await _problem(authorizer, _attributes(request, subresource="binding"))
        if not problem:
            return []
        needed = f'resource="resourceclaims/binding", verb="{request.verb}" permission'
        detail = f"changing status.allocation or status.reservedFor requires {needed}: {problem}"
        return [forbidden(_STATUS.child("allocation"), detail)]

    async def _driver_errors(
        self, request: WriteRequest, authorizer: Authorizer, status: Object, old: Object
    ) -> ErrorList:
        """The errors for drivers whose devices the user can't write; users on the claim's node need fewer permissions."""
        verbs = [f"arbitrary-node:{request.verb}"]
        if _lives_on(request.user, _node(status["allocation"])):
            verbs.insert(0, f"associated-node:{request.verb}")
        errors: ErrorList = []
        for driver in sorted(_changed_drivers(status, old)):
            asked = _attributes(request, subresource="driver", namespace=request.namespace, name=driver)
            problems = [await _problem(authorizer, replace(asked, verb=verb)) for verb in verbs]
            if all(problems):
                needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
                detail = f"changing status.devices requires {needed}: {problems[0]}"
                errors.append(forbidden(_STATUS.child("devices"), detail))
        return errors


def _attributes(request: WriteRequest, *, subresource: str, namespace: str = "", name: str = "") -> Attributes:
    return Attributes(
        user=request.user,
        verb=request.verb,
        resource_request=True,
        api_group=GROUP,
        api_version=request.kind.gvk.version,
        resource="resourceclaims",
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


async def _problem(authorizer: Authorizer, attributes: Attributes) -> str:
    """The reason why an access isn't allowed; empty if it is."""
    try:
        decision, reason = await authorizer.authorize(attributes)
    except EvaluationError as error:
        decision, reason = Decision.NO_OPINION, f"{error}: {error.reason}" if error.reason else str(error)
    return "" if decision is Decision.ALLOW else forbidden_error(attributes, reason).message


def _changed_drivers(status: Object, old: Object) -> set[str]:
    """The drivers whose device statuses have changed."""
    rows, before = _by_device(status), _by_device(old)
    return {device[0] for device in rows.keys() | before.keys() if rows.get(device) != before.get(device)}


def _by_device(status: Object) -> Mapping[tuple[str, ...], Any]:
    return {device_id(row): row for row in status.get("devices") or ()}


def _node(allocation: Object) -> str:
    """The node that an allocation is for, if its selector names one and nothing else."""
    terms: Sequence[Object] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    fields: Sequence[Object] = (
        terms[0].get("matchFields") or () if len(terms) == 1 and not terms[0].get("matchExpressions") else ()
    )
    if len(fields) != 1 or fields[0].get("key") != "metadata.name" or fields[0].get("operator") != "In":
        return ""
    values: Sequence[str] = fields[0].get("values") or ()
    return values[0] if len(values) == 1 else ""


def _lives_on(user: UserInfo, node: str) -> bool:
    return bool(node) and user.name.startswith(_ACCOUNT) and list(user.extra.get(_NODE_NAME, ())) == [node]


def _asked(obj: Object, old: Object | None, *, status: bool) -> Path | None:
    """The path of the first request for admin access that is new, in a new object or in an allocation."""
    if status:
        path = _STATUS.child("allocation", "devices", "results")
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
