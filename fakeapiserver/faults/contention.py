"""Another client or tenant that is in the way: it holds a lease, or has used up a quota.

Upstream: k8s.io/client-go/tools/leaderelection, k8s.io/apiserver/pkg/admission/plugin/resourcequota.
"""

from fakeapiserver.apimachinery.errors import StatusError, new_forbidden
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.registry.generic.write_request import WriteRequest

# The objects that quotas count by their plain names (upstream: pkg/quota/v1/evaluator/core).
_PLAIN = frozenset(
    ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services")
)


async def take_lease(scope: RequestScope, request: Request, holder: str) -> None:
    """Makes `holder` the holder of the lease that the request is for, and renews it, as a candidate does that has won the election.

    Does nothing if there is no such lease.
    """
    assert scope.store is not None
    now = rfc3339_micro(scope.clock.now())

    def transform(current: Object | None) -> Object:
        assert current is not None
        spec = dict(current.get("spec") or {})
        if spec.get("holderIdentity") != holder:
            transitions = spec.get("leaseTransitions") or 0
            spec |= {"holderIdentity": holder, "acquireTime": now, "leaseTransitions": transitions + 1}
        return {**current, "spec": {**spec, "renewTime": now}}

    info = request.info
    if scope.store.storage.get_now(scope.store.key(info.namespace, info.name)) is None:
        return
    user = UserInfo(holder, groups=("system:masters",))
    await scope.store.write(WriteRequest(scope.kind, user, holder, info.namespace, info.name), transform)


def quota_exceeded(scope: RequestScope, request: Request, quota: str, name: str) -> StatusError:
    """Returns the 403 for a new object in a namespace that has as many as its quota allows."""
    assert scope.store is not None
    resource = GroupResource(request.info.group, request.info.resource)
    counted = resource.resource if resource.resource in _PLAIN and not resource.group else f"count/{resource}"
    used = len(scope.store.storage.list_now(scope.store.collection(request.info.namespace)).items)
    reason = f"exceeded quota: {quota}, requested: {counted}=1, used: {counted}={used}, limited: {counted}={used}"
    return new_forbidden(resource, name, reason)
