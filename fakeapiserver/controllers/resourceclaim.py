"""Claims for devices: pods get those that their templates ask for, and claims are free again when their pods have gone.

What the scheduler allocates is left to it; a pod that has a node already gets its claims reserved here.
Upstream: pkg/controller/resourceclaim/controller.go, k8s.io/dynamic-resource-allocation/resourceclaim/claim.go.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    controller_of,
    is_terminating,
    key_of,
)
from fakeapiserver.component_helpers.pods import add_indexer, is_pod_terminal
from fakeapiserver.component_helpers.resource_claims import (
    FINALIZER,
    MAX_RESERVED,
    claim_names,
    is_for,
    is_generated,
    is_reserved_for,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
_MANAGER: Final = "ResourceClaimController"
_BY_CLAIM: Final = "podResourceClaim"
_BY_TEMPLATE: Final = "podResourceClaimTemplate"
_BY_OWNER: Final = "claimPodOwner"
_MAX_BASE: Final = 57
_MAX_DELETED: Final = 500
_REMEMBERED: Final = 60.0  # seconds


class ClaimFailed(Exception):
    """A pod's claim can't be made."""


def _by_claim(pod: Object) -> Iterable[str]:
    namespace = pod["metadata"]["namespace"]
    return {f"{namespace}/{name}" for _, name in claim_names(pod) if name}


def _by_template(pod: Object) -> Iterable[str]:
    rows = pod["spec"].get("resourceClaims") or ()
    namespace = pod["metadata"]["namespace"]
    return {f"{namespace}/{row['resourceClaimTemplateName']}" for row in rows if row.get("resourceClaimTemplateName")}


def _by_owner(claim: Object) -> Iterable[str]:
    owner = controller_of(claim)
    return [owner["uid"]] if owner is not None and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod") else []


class Pods:
    """Requests are pods."""

    def __init__(self, context: ControllerContext, claim_queue: Queue, deleted: "OrderedDict[str, None]") -> None:
        self._client = context.client
        self._recorder = context.recorder("resource_claim")
        self._claim_queue = claim_queue
        self._deleted = deleted
        self.pods = context.informer(PODS)
        self.claims = context.informer(RESOURCE_CLAIMS)
        self.templates = context.informer(RESOURCE_CLAIM_TEMPLATES)
        self._pods = add_indexer(self.pods, _BY_CLAIM, _by_claim)
        add_indexer(self.pods, _BY_TEMPLATE, _by_template)
        self._owned = add_indexer(self.claims, _BY_OWNER, _by_owner)
        self._clock = context.clock
        # Made for (pod's uid, its claim), and until when: it counts as there for so long, seen or not.
        self._made: dict[tuple[str, str], tuple[str, float]] = {}

    # ------------------------------------------------------------------------- events

    def pod_changed(self, event: Event, queue: Queue) -> None:
        pod = event.object_new if isinstance(event, UpdateEvent) else event.object
        self._look_at(pod, queue, gone=isinstance(event, DeleteEvent))

    def _look_at(self, pod: Object, queue: Queue, *, gone: bool = False) -> None:
        metadata = pod["metadata"]
        extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
        if not pod["spec"].get("resourceClaims") and not extended:
            return
        if gone:
            self._deleted[metadata["uid"]] = None
            if len(self._deleted) > _MAX_DELETED:
                self._deleted.popitem(last=False)
            for row in pod["spec"].get("resourceClaims") or ():
                self._made.pop((metadata["uid"], row["name"]), None)
        if gone or is_pod_terminal(pod) or (is_terminating(pod) and not pod["spec"].get("nodeName")):
            names = [name for _, name in claim_names(pod) if name]
            for name in [*names, *([extended["resourceClaimName"]] if extended else [])]:
                self._claim_queue.add(Request(metadata["namespace"], name))
        if not gone and self._needs_work(pod):
            queue.add(request_for(pod))

    def _needs_work(self, pod: Object) -> bool:
        if is_terminating(pod):
            return False
        for row, name in claim_names(pod):
            if name is None:
                return True
            claim = self._claim(pod, name)
            if claim is None:
                if name and row.get("resourceClaimTemplateName"):
                    return True
            elif (not is_generated(row) or is_for(pod, claim)) and _can_be_reserved(pod, claim):
                return True
        return False

    def _claim(self, pod: Object, name: str) -> Object | None:
        return self.claims.indexer.get_by_key(f"{pod['metadata']['namespace']}/{name}") if name else None

    def claim_changed(self, event: Event, queue: Queue) -> None:
        claim = event.object_new if isinstance(event, UpdateEvent) else event.object
        if not isinstance(event, DeleteEvent):
            self._claim_queue.add(request_for(claim))
        for pod in self._pods.by_index(_BY_CLAIM, key_of(claim)):
            self._look_at(pod, queue)

    def template_changed(self, event: Event, queue: Queue) -> None:
        if isinstance(event, DeleteEvent):
            return
        template = event.object_new if isinstance(event, UpdateEvent) else event.object
        for pod in self._pods.by_index(_BY_TEMPLATE, key_of(template)):
            self._look_at(pod, queue)

    # --------------------------------------------------------------------------- pods

    async def reconcile(self, request: Request) -> None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None or is_terminating(pod):
            return
        made: dict[str, str] = {}
        for row, name in claim_names(pod):
            try:
                claim_name = await self._provide(pod, row, name)
            except (ClaimFailed, StatusError) as error:
                problem = f"PodResourceClaim {row['name']}: {error}"
                self._recorder.event(pod, "Warning", "FailedResourceClaimCreation", problem)
                raise ClaimFailed(f"pod {request}, {problem}") from error
            if claim_name:
                made[row["name"]] = claim_name
        if made:
            statuses = [{"name": name, "resourceClaimName": claim_name} for name, claim_name in made.items()]
            body = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": request.name, "namespace": request.namespace},
                "status": {"resourceClaimStatuses": statuses},
            }
            pods = self._client.resource(PODS, request.namespace)
            await pods.apply_status(body, field_manager=_MANAGER, force=True)
        if pod["spec"].get("nodeName"):
            await self._reserve(pod)

    async def _provide(self, pod: Object, row: Object, name: str | None) -> str:
        """Creates the claim for a pod's row if needed; returns the name for the pod's status, or ""."""
        if name == "":
            return ""
        claim = self._claim(pod, name or "")
        if claim is not None and (not is_generated(row) or is_for(pod, claim)):
            return ""
        if not is_generated(row):
            return ""
        metadata, template_name = pod["metadata"], row["resourceClaimTemplateName"]
        for owned in self._owned.by_index(_BY_OWNER, metadata["uid"]):
            if (owned["metadata"].get("annotations") or {}).get(CLAIM_NAME) == row["name"]:
                owned_name: str = owned["metadata"]["name"]
                return owned_name
        key, now = (metadata["uid"], row["name"]), self._clock.monotonic()
        known, until = self._made.get(key, ("", 0.0))
        if known and now < until:
            return known
        if is_pod_terminal(pod):
            return ""
        template = self.templates.indexer.get_by_key(f"{metadata['namespace']}/{template_name}")
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ClaimFailed(f'resource claim template "{template_name}": {missing}')
        try:
            created = await self._client.resource(RESOURCE_CLAIMS, metadata["namespace"]).create(
                _generated(pod, row["name"], template)
            )
        except StatusError as error:
            raise ClaimFailed(f"create ResourceClaim : {error}") from error
        made: str = created["metadata"]["name"]
        self._made[key] = made, now + _REMEMBERED
        return made

    async def _reserve(self, pod: Object) -> None:
        """Reserves the claims of a pod that was bound to a node without them."""
        metadata = pod["metadata"]
        for row, name in claim_names(pod):
            claim = self._claim(pod, name or "")
            if claim is None:
                if name == "":
                    continue
                return
            if is_generated(row) and not is_for(pod, claim):
                raise ClaimFailed(
                    f"ResourceClaim {key_of(claim)} was not created for pod {key_of(pod)} (pod is not owner)"
                )
            if _can_be_reserved(pod, claim):
                consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
                reserved = [*(claim["status"].get("reservedFor") or ()), consumer]
                claims = self._client.resource(RESOURCE_CLAIMS, metadata["namespace"])
                await claims.update_status({**claim, "status": {**claim["status"], "reservedFor": reserved}})


class Claims:
    """Requests are claims."""

    def __init__(self, context: ControllerContext, deleted: "OrderedDict[str, None]") -> None:
        self._client = context.client
        self._deleted = deleted
        self._pods = context.informer(PODS).indexer
        self._claims = context.informer(RESOURCE_CLAIMS).indexer

    async def reconcile(self, request: Request) -> None:
        claim = self._claims.get_by_key(str(request))
        if claim is None:
            return
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        remaining = [row for row in reserved if await self._is_needed(request.namespace, row)]
        is_protected = FINALIZER in (claim["metadata"].get("finalizers") or ())
        if len(remaining) < len(reserved):
            after = {key: value for key, value in status.items() if key != "reservedFor"}
            if remaining:
                after["reservedFor"] = remaining
            elif is_protected:
                after.pop("allocation", None)
            await self._write(claim, after)
        elif is_protected and is_terminating(claim) and not remaining:
            after = {key: value for key, value in status.items() if key != "allocation"}
            await self._write(claim, after, changed="allocation" in status)
        if not remaining:
            await self._delete_unused(claim)

    async def _write(self, claim: Object, status: Object, *, changed: bool = True) -> None:
        """Writes the status, and removes the finalizer from an unused claim."""
        claims = self._client.resource(RESOURCE_CLAIMS, claim["metadata"]["namespace"])
        if changed:
            claim = await claims.update_status({**claim, "status": status})
        finalizers = claim["metadata"].get("finalizers") or ()
        if FINALIZER in finalizers and not (claim.get("status") or {}).get("allocation"):
            kept = [name for name in finalizers if name != FINALIZER]
            await claims.update({**claim, "metadata": {**claim["metadata"], "finalizers": kept}})

    async def _is_needed(self, namespace: str, row: Object) -> bool:
        """Reports whether the consumer still needs its reservation; unknown consumers do."""
        if row.get("apiGroup") or row["resource"] != "pods":
            return True
        if row["uid"] in self._deleted:
            return False
        pod = self._pods.get_by_key(f"{namespace}/{row['name']}")
        if pod is not None:
            return bool(pod["metadata"]["uid"] == row["uid"]) and not _is_done(pod)
        try:
            stored_pod = await self._client.resource(PODS, namespace).get(row["name"])
        except StatusError as error:
            if is_not_found(error):
                return False
            raise
        return bool(stored_pod["metadata"]["uid"] == row["uid"])

    async def _delete_unused(self, claim: Object) -> None:
        """Its pod has ended, and may stay for long."""
        owner, namespace = controller_of(claim), claim["metadata"]["namespace"]
        if owner is None or (owner["apiVersion"], owner["kind"]) != ("v1", "Pod"):
            return
        pod = self._pods.get_by_key(f"{namespace}/{owner['name']}")
        if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _is_done(pod)):
            try:
                await self._client.resource(RESOURCE_CLAIMS, namespace).delete(claim["metadata"]["name"])
            except StatusError as error:
                if not is_not_found(error):
                    raise


def _is_done(pod: Object) -> bool:
    return is_pod_terminal(pod) or (is_terminating(pod) and not pod["spec"].get("nodeName"))


def _can_be_reserved(pod: Object, claim: Object) -> bool:
    """Reports whether the claim is allocated and not yet reserved for a pod that has a node."""
    status = claim.get("status") or {}
    return (
        bool(pod["spec"].get("nodeName"))
        and status.get("allocation") is not None
        and not is_reserved_for(pod, claim)
        and len(status.get("reservedFor") or ()) < MAX_RESERVED
    )


def _generated(pod: Object, name: str, template: Object) -> Object:
    metadata, shape = pod["metadata"], template["spec"].get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    body = {
        "generateName": _base(metadata["name"], name),
        "annotations": {**(shape.get("annotations") or {}), CLAIM_NAME: name},
        "ownerReferences": [owner],
        **({"labels": shape["labels"]} if shape.get("labels") else {}),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": body,
        "spec": template["spec"]["spec"],
    }


def _base(pod: str, claim: str) -> str:
    """Both names, shortened alike where they are too long."""
    whole = f"{pod}-{claim}-"
    if len(whole) <= _MAX_BASE:
        return whole
    start = pod[: len(pod) * _MAX_BASE // len(whole)]
    return f"{start}-{claim[: len(claim) * _MAX_BASE // len(whole)]}"


def new(context: ControllerContext) -> Sequence[Controller]:
    deleted: OrderedDict[str, None] = OrderedDict()
    workers = context.configuration.concurrent_resourceclaim_syncs
    claims = context.controller(Claims(context, deleted), workers=workers, name=f"{context.name}-claims")
    reconciler = Pods(context, claims.queue, deleted)
    pods = context.controller(reconciler, workers=workers, name=f"{context.name}-pods")
    pods.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    pods.add_source(Informer(reconciler.claims, reconciler.claim_changed))
    pods.add_source(Informer(reconciler.templates, reconciler.template_changed))
    return [pods, claims]
