"""pods/eviction: a deletion that disruption budgets may refuse (what `kubectl drain` asks for).

Upstream: pkg/registry/core/pod/storage/eviction.go.
"""

from typing import Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import field, labels
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_bad_request,
    new_forbidden,
    new_internal_error,
    new_invalid,
    new_too_many_requests,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata, resource_version
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.subresources.subresource import decoded, mutated, success
from fakeapiserver.endpoints.verbs.delete import deletion_of
from fakeapiserver.endpoints.verbs.options import DeleteOptions, judged_delete_options
from fakeapiserver.registry.core.pod.status import is_ready, set_condition
from fakeapiserver.registry.generic.deletion import check_preconditions
from fakeapiserver.registry.generic.kind import BuiltinKind
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.registry.generic.write_request import WriteRequest

_GVK: Final = GroupVersionKind("policy", "v1", "Eviction")
_OLDER: Final = GroupVersion("policy", "v1beta1")
_DEFINITION: Final = "io.k8s.api.policy.v1.Eviction"
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))
_ENDED: Final = ("Succeeded", "Failed")
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SECONDS: Final = 10
_MAX_DISRUPTED: Final = 2000
# Two evictions at the same time conflict in the budget's status; the later one tries again.
_ATTEMPTS: Final = 20


async def evict(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Answers 201 with a Status. StatusError 429 if a budget allows no more disruptions; 400, 404, 409, 422."""
    info, store = request.info, scope.store
    assert store is not None
    kind = BuiltinKind(_GVK, _DEFINITION, scope.kind.definitions, lambda obj, version: None, scope.kind.reword)
    kind.also_accepts = (_OLDER,)
    eviction, options = await decoded(request, kind, scope)
    attributes = await mutated(request, scopes, scope, eviction, options, kind=_GVK)
    eviction = attributes.object or eviction
    if metadata(eviction).get("name", "") != info.name:
        raise new_bad_request("name in URL does not match name in Eviction object")
    deletion, refusal = _delete_options(eviction, info.name, options.dry_run)
    await scopes.services.admission.validate(attributes)
    pod = store.decode((await store.get(info.namespace, info.name)).value)
    expected = deletion.resource_version
    if _past_budgets(pod):
        if (pod.get("status") or {}).get("phase") not in _ENDED and not is_terminating(pod):
            expected = expected or resource_version(pod)
    else:
        # An unready pod that costs its budget nothing must still be in the state that was checked, whatever the client's preconditions.
        expected = await _ask_budget(pod, scopes, scope, deletion.dry_run) or expected
    await _delete(store, scope, pod, replace(deletion, resource_version=expected), refusal)
    return success(request, scope)


def _delete_options(eviction: Object, name: str, dry_run: bool) -> tuple[DeleteOptions, StatusError | None]:
    """The options of the deletion, and the error that refuses them later, if any."""
    body = eviction.get("deleteOptions")
    if body and body.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
        path = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
        detail = "can not be set for pod eviction, try after removing the option"
        raise new_invalid(GroupKind("policy", "Eviction"), name, [field.invalid(path, True, detail)])
    options, refusal = judged_delete_options({}, body or {})
    if dry_run and options.dry_run and (body or {})["dryRun"] != ["All"]:
        content = " ".join((body or {})["dryRun"])
        raise new_bad_request(f"Non-matching dry-run options in request and content: [All] and [{content}]")
    return replace(options, dry_run=options.dry_run or dry_run), refusal


def _past_budgets(pod: Object) -> bool:
    """Reports whether a pod has ended or never ran, so that its deletion disrupts nothing."""
    return is_terminating(pod) or (pod.get("status") or {}).get("phase") in (*_ENDED, "Pending")


async def _ask_budget(pod: Object, scopes: RequestScopes, scope: RequestScope, dry_run: bool) -> str | None:
    """Takes one disruption from the pod's budget; StatusError 429 when it has none.

    The answer is the resourceVersion that the pod must still have: that of an unready pod, which costs nothing."""
    budgets = _budgets(pod, scopes)
    if not budgets:
        return None
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise status_error(500, "", text)
    budget = budgets[0]
    if not is_ready(pod) and _spares_unready(budget):
        return resource_version(pod)
    for _ in range(_ATTEMPTS):
        status = _with_disruption(budget, metadata(pod)["name"], rfc3339(scope.clock.now()))
        if dry_run or await _write_status(budget, status, scopes):
            return None
        budget = next((matching for matching in _budgets(pod, scopes)), budget)
    raise new_internal_error(f"couldn't update PodDisruptionBudget {go_quote(metadata(budget)['name'])}")


def _budgets(pod: Object, scopes: RequestScopes) -> list[Object]:
    """The budgets in the pod's namespace that select it."""
    meta = metadata(pod)
    store = scopes.store_for(GroupResource("policy", "poddisruptionbudgets"))
    assert store is not None
    budgets = [store.decode(item.value) for item in store.storage.list_now(store.collection(meta["namespace"])).items]
    pod_labels = meta.get("labels") or {}
    return [
        budget for budget in budgets if labels.from_label_selector(budget["spec"].get("selector")).matches(pod_labels)
    ]


def _spares_unready(budget: Object) -> bool:
    """Reports whether evicting an unready pod costs the budget nothing: it isn't counted as healthy, and the policy or enough other pods
    allow it.
    """
    status = budget.get("status") or {}
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _with_disruption(budget: Object, pod: str, now: str) -> Object:
    """Returns the budget's status after one more disruption. Raises StatusError 429 and 403 if none is allowed."""
    name, status = metadata(budget)["name"], budget.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata(budget).get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _SECONDS)
    resource = GroupResource("policy", "poddisruptionbudget")
    if allowed < 0:
        raise new_forbidden(resource, name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > _MAX_DISRUPTED:
        reason = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise new_forbidden(resource, name, reason)
    if allowed == 0:
        raise _refused(_why_none(name, status))
    new = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: now}}
    if allowed == 1:
        _set_disruption_allowed(new, metadata(budget).get("generation", 0), now)
    return new


def _why_none(name: str, status: Object) -> str:
    conditions = status.get("conditions") or ()
    condition: Object = next((row for row in conditions if row["type"] == "DisruptionAllowed"), {})
    message = condition.get("message") if condition.get("status") == "False" else ""
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    none = f"The disruption budget {name} does not allow evicting pods currently"
    if message and condition.get("reason") == "SyncFailed":
        return f"{none} because it failed sync: {message}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return f"{none} ({condition.get('reason')}): {message}" if message else none


def _refused(cause: str, retry_after: int = 0) -> StatusError:
    error = new_too_many_requests(_REFUSED, retry_after)
    error.status["details"]["causes"] = [{"reason": "DisruptionBudget", "message": cause}]
    return error


def _set_disruption_allowed(status: Object, generation: int, now: str) -> None:
    """Sets the condition of a budget that allows no more disruptions (upstream: pdbhelper.UpdateDisruptionAllowedCondition)."""
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    others = [row for row in status.get("conditions") or () if row["type"] != "DisruptionAllowed"]
    before = [row for row in status.get("conditions") or () if row["type"] == "DisruptionAllowed"]
    if before and before[0]["status"] == "False":
        condition["lastTransitionTime"] = before[0]["lastTransitionTime"]
    status["conditions"] = [*others, condition]


async def _write_status(budget: Object, status: Object, scopes: RequestScopes) -> bool:
    """Writes the budget's status; False if it lost a race."""
    scope = scopes.lookup("policy", "v1", "poddisruptionbudgets")
    assert scope is not None
    assert scope.store is not None
    meta = metadata(budget)
    write = WriteRequest(
        kind=scope.kind,
        user=_SERVER,
        manager="kube-apiserver",
        namespace=meta["namespace"],
        name=meta["name"],
        subresource="status",
    )
    try:
        await scope.store.write(write, lambda current: {**budget, "status": status})
    except StatusError as error:
        if error.status["code"] != 409:
            raise
        return False
    return True


async def _delete(
    store: Store, scope: RequestScope, pod: Object, options: DeleteOptions, refusal: StatusError | None
) -> None:
    """Marks the pod as a target of disruption, then deletes it. Invalid options are refused only then."""
    meta, now, deletion = metadata(pod), rfc3339(scope.clock.now()), deletion_of(options)

    def mark(current: Object) -> Object:
        if refused := check_preconditions(current, deletion, store.strategy, store.resource, store.kind, meta["name"]):
            raise refused
        status = dict(current.get("status") or {})
        reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
        set_condition(status, {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}, now)
        return {**current, "status": status}

    if not options.dry_run:
        marked = await store.amend(meta["namespace"], meta["name"], mark)
        if deletion.resource_version:
            deletion = replace(deletion, resource_version=resource_version(store.decode(marked.value)))
    if refusal is not None:
        raise refusal
    await store.deleter.remove(meta["namespace"], meta["name"], deletion, dry_run=options.dry_run)
