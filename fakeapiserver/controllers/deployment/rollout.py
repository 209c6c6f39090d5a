"""The sync of a deployment (upstream: pkg/controller/deployment/{sync,rolling,recreate,rollback,progress}.go)."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_already_exists, is_not_found
from fakeapiserver.component_helpers.conditions import find_condition
from fakeapiserver.component_helpers.objects import (
    DEPLOYMENTS,
    REPLICA_SETS,
    controller_of,
    is_namespace_terminating,
    is_terminating,
)
from fakeapiserver.component_helpers.workloads.pod_template import same_templates
from fakeapiserver.controller_runtime.reconcile import Result
from fakeapiserver.controllers.deployment import conditions, counts, revisions
from fakeapiserver.controllers.deployment.new_replica_set import new_replica_set
from fakeapiserver.controllers.deployment.revisions import POD_TEMPLATE_HASH, REVISION, ROLLBACK_TO

log = logging.getLogger(__name__)

_UNLIMITED: Final = 2**31 - 1
# A progress check comes this much later than it could, seconds.
_LATE: Final = 1.0


class _StatusIsOld(Exception):
    """The replica set's controller hasn't caught up: its counts say nothing of its size."""


class RolloutTools(Struct, frozen=True):
    """The parts of the controller that a rollout uses.

    has_pods: whether a replica set has pods that haven't ended. known_replica_set: returns one by its name. wrote: called after each write.
    """

    client: DynamicClient
    recorder: CoreEventRecorder
    has_pods: Callable[[Object], bool]
    known_replica_set: Callable[[str], Object | None]
    wrote: Callable[[Object], None]


class Rollout:
    """Syncs one deployment. `deployment` and `replica_sets` are the known state, which each write updates. Raises the server's errors."""

    def __init__(
        self,
        tools: RolloutTools,
        now: float,
        deployment: Object,
        replica_sets: Iterable[Object],
    ) -> None:
        namespace = deployment["metadata"]["namespace"]
        self._deployments = tools.client.resource(DEPLOYMENTS, namespace)
        self._replica_sets = tools.client.resource(REPLICA_SETS, namespace)
        self._recorder = tools.recorder
        self._now = now
        self._deployment = deployment
        self._has_pods = tools.has_pods
        self._known = tools.known_replica_set
        self._wrote = tools.wrote
        self._new: Object | None = None
        self._old: list[Object] = []
        self._sort_out(counts.by_creation(replica_sets))

    def _sort_out(self, replica_sets: Sequence[Object]) -> None:
        self._new = revisions.find_new(self._deployment, replica_sets)
        self._old = [replica_set for replica_set in replica_sets if replica_set is not self._new]

    @property
    def _everything(self) -> list[Object]:
        return [*self._old, *([self._new] if self._new is not None else [])]

    # --------------------------------------------------------------------- dispatch

    async def sync(self) -> Result | None:
        """Does what there is to do now."""
        if is_terminating(self._deployment):
            await self._sync_revision()
            await self._sync_status()
            return None
        await self._check_paused_conditions()
        if self._deployment["spec"].get("paused"):
            await self._sync_size()
            return None
        if (revision := revisions.rollback_to(self._deployment)) is not None:
            await self._roll_back(revision)
            return None
        await self._sync_revision()
        if self._is_scaling_event():
            await self._sync_size()
            return None
        return await (self._roll() if counts.is_rolling_update(self._deployment) else self._recreate())

    def _is_scaling_event(self) -> bool:
        """The size that is wanted has changed, not the template."""
        desired = counts.spec_replicas(self._deployment)
        annotated = map(counts.desired_replicas_annotation, counts.active(self._everything))
        return any(number not in (None, desired) for number in annotated)

    async def _sync_size(self) -> None:
        await self._sync_revision()
        await self._scale_all()
        if self._deployment["spec"].get("paused") and revisions.rollback_to(self._deployment) is None:
            await self._clean_up()
        await self._sync_status()

    async def _check_paused_conditions(self) -> None:
        """Time stands still for a paused deployment's deadline."""
        if not conditions.has_progress_deadline(self._deployment):
            return
        condition = find_condition(self._deployment["status"].get("conditions"), "Progressing") or {}
        reason, paused = condition.get("reason"), bool(self._deployment["spec"].get("paused"))
        if reason == conditions.TIMED_OUT or paused == (reason == conditions.PAUSED):
            return
        if paused:
            self._set_progressing("Unknown", conditions.PAUSED, "Deployment is paused")
        else:
            self._set_progressing("Unknown", conditions.RESUMED, "Deployment is resumed")
        await self._update_status()

    # ------------------------------------------------------------- the new replica set

    async def _sync_revision(self, *, create: bool = False) -> None:
        """The new replica set has its annotations, and the deployment its revision; `create`: it is made if it isn't there."""
        number = revisions.max_revision(self._old) + 1
        if self._new is not None:
            await self._sync_new(self._new, number)
        elif create:
            await self._create_new(number)

    async def _sync_new(self, new: Object, number: int) -> None:
        annotations = revisions.new_annotations(self._deployment, new, number)
        wait = self._deployment["spec"].get("minReadySeconds", 0)
        if annotations != revisions.annotations_of(new) or wait != new["spec"].get("minReadySeconds", 0):
            changed = revisions.with_annotations(new, annotations)
            self._new = await self._replica_sets.update({**changed, "spec": {**new["spec"], "minReadySeconds": wait}})
            self._wrote(self._new)
            return
        changed_revision = self._set_revision(annotations.get(REVISION, ""))
        unknown = find_condition(self._deployment["status"].get("conditions"), "Progressing") is None
        if unknown and conditions.has_progress_deadline(self._deployment):
            message = f'Found new replica set "{new["metadata"]["name"]}"'
            self._set_progressing("True", conditions.FOUND_NEW, message)
        elif not changed_revision:
            return
        await self._update_status()

    async def _create_new(self, number: int) -> None:
        new = new_replica_set(self._deployment, self._old, number)
        size, name = counts.spec_replicas(new), new["metadata"]["name"]
        has_deadline = conditions.has_progress_deadline(self._deployment)
        try:
            self._new = await self._replica_sets.create(new)
            self._wrote(self._new)
        except StatusError as error:
            if is_already_exists(error):
                self._new = await self._own_one_of_that_name(name, error)
                if self._set_revision(str(number)):
                    await self._update_status()
                return
            if not is_namespace_terminating(error):
                message = f'Failed to create new replica set "{name}": {error}'
                if has_deadline:
                    self._set_progressing("False", conditions.FAILED_CREATE, message)
                    await self._try_update_status()
                self._event("Warning", conditions.FAILED_CREATE, message)
            raise
        if size > 0:
            self._event("Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
        changed = self._set_revision(str(number))
        if has_deadline:
            self._set_progressing("True", conditions.NEW_REPLICA_SET, f'Created new replica set "{name}"')
        if changed or has_deadline:
            await self._update_status()

    async def _own_one_of_that_name(self, name: str, error: StatusError) -> Object:
        """The deployment's new replica set, which wasn't seen yet. Otherwise two templates have one hash: the deployment counts
        that, and another name is tried next time. StatusError."""
        known = self._known(name)
        if known is None:
            raise error
        owner = controller_of(known)
        owned = owner is not None and owner["uid"] == self._deployment["metadata"]["uid"]
        template = self._deployment["spec"]["template"]
        if owned and same_templates(template, known["spec"]["template"], POD_TEMPLATE_HASH):
            return known
        status = self._deployment["status"]
        collisions = status.get("collisionCount", 0) + 1
        self._deployment = {**self._deployment, "status": {**status, "collisionCount": collisions}}
        await self._try_update_status()
        raise error

    # -------------------------------------------------------------------------- sizes

    async def _scale_all(self) -> None:
        """Spreads a change of size over the replica sets, so that a rollout gets no faster by it."""
        desired = counts.spec_replicas(self._deployment)
        only = counts.active_or_latest(self._new, self._old)
        if only is not None:
            await self._scale(only, desired)
        elif counts.is_saturated(self._deployment, self._new):
            for replica_set in counts.active(self._old):
                await self._scale(replica_set, 0)
        elif counts.is_rolling_update(self._deployment):
            sizes = counts.proportional_sizes(self._deployment, counts.active(self._everything))
            for replica_set, size in sizes:
                await self._scale(replica_set, size, force=True)

    async def _scale(self, replica_set: Object, size: int, *, force: bool = False) -> Object:
        """Scales the replica set and returns it. `force`: writes the annotations even if the size is right already.

        The status that follows reports the old size, as upstream does; it stays if the next sync fails.
        """
        current = counts.spec_replicas(replica_set)
        annotations = revisions.annotations_of(replica_set)
        annotated = annotations | counts.replicas_annotations(self._deployment)
        if size == current and not (force and annotated != annotations):
            return replica_set
        changed = revisions.with_annotations(replica_set, annotated)
        written = await self._replica_sets.update({**changed, "spec": {**changed["spec"], "replicas": size}})
        self._wrote(written)
        if size != current:
            name = written["metadata"]["name"]
            direction = "up" if current < size else "down"
            message = f"Scaled {direction} replica set {name} from {current} to {size}"
            self._event("Normal", "ScalingReplicaSet", message)
        return written

    # ----------------------------------------------------------------------- strategies

    async def _roll(self) -> Result | None:
        """New pods come as old ones go (upstream: rolling.go)."""
        await self._sync_revision(create=True)
        if not (await self._grow() or await self._shrink_old()) and conditions.is_complete(
            self._deployment, self._deployment["status"]
        ):
            await self._clean_up()
        return await self._sync_rollout_status()

    async def _grow(self) -> bool:
        """The new replica set gets as many pods as may be; whether it got or lost any."""
        new = self._required_new()
        size, desired = counts.spec_replicas(new), counts.spec_replicas(self._deployment)
        if size < desired:
            desired = counts.new_replicas(self._deployment, self._everything, size)
        await self._scale(new, desired)
        return size != desired

    async def _shrink_old(self) -> bool:
        """Old replica sets lose as many pods as may be missing: those that are of no use first."""
        old = counts.active(self._old)
        if not old:
            return False
        new = self._required_new()
        least = counts.spec_replicas(self._deployment) - counts.max_unavailable(self._deployment)
        missing_new = counts.spec_replicas(new) - counts.status_count(new, "availableReplicas")
        most = counts.total_replicas(self._everything) - least - missing_new
        if most <= 0:
            return False
        try:
            healthy, cleaned = await self._clean_up_unhealthy(old, most)
            return await self._shrink([*healthy, new], healthy, least) > 0 or cleaned > 0
        except (StatusError, _StatusIsOld) as error:
            log.info("old replica sets could not be scaled down: %s", error)
            return False

    async def _clean_up_unhealthy(self, old: Sequence[Object], most: int) -> tuple[Sequence[Object], int]:
        """(the old ones as they are now, how many pods less)."""
        replica_sets, done = [*old], 0
        for index, replica_set in enumerate(old):
            size, available = counts.spec_replicas(replica_set), counts.status_count(replica_set, "availableReplicas")
            if done >= most:
                break
            if size == available:
                continue
            if size < available:
                raise _StatusIsOld(f"{replica_set['metadata']['name']} wants fewer pods than it has")
            gone = min(most - done, size - available)
            replica_sets[index] = await self._scale(replica_set, size - gone)
            done += gone
        return replica_sets, done

    async def _shrink(self, everything: Iterable[Object], old: Iterable[Object], least: int) -> int:
        """Scales old replica sets down as far as more pods than `least` are available; returns by how many."""
        surplus, done = counts.total_count(everything, "availableReplicas") - least, 0
        for replica_set in old:
            if done >= surplus:
                break
            size = counts.spec_replicas(replica_set)
            gone = min(size, surplus - done)
            await self._scale(replica_set, size - gone)
            done += gone
        return done

    async def _recreate(self) -> Result | None:
        """No new pod comes before every old one has gone (upstream: recreate.go)."""
        old = counts.active(self._old)
        for replica_set in old:
            await self._scale(replica_set, 0)
        if old or self._old_pods_run():
            return await self._sync_rollout_status()
        if self._new is None:
            await self._sync_revision(create=True)
        await self._scale(self._required_new(), counts.spec_replicas(self._deployment))
        if conditions.is_complete(self._deployment, self._deployment["status"]):
            await self._clean_up()
        return await self._sync_rollout_status()

    def _old_pods_run(self) -> bool:
        return counts.total_count(self._old, "replicas") > 0 or any(map(self._has_pods, self._old))

    async def _roll_back(self, revision: int) -> None:
        """Takes the template of a former revision, 0 for the last one (upstream: rollback.go)."""
        await self._sync_revision(create=True)
        number = revision or revisions.last_revision(self._everything)
        replica_set = next(
            (replica_set for replica_set in self._everything if revisions.revision(replica_set) == number), None
        )
        if number and replica_set is not None:
            await self._roll_back_to(replica_set, number)
            return
        text = "Unable to find the revision to rollback to." if number else "Unable to find last revision."
        self._event("Warning", "DeploymentRollbackRevisionNotFound", text)
        await self._clear_rollback()

    async def _roll_back_to(self, replica_set: Object, number: int) -> None:
        name = self._deployment["metadata"]["name"]
        template = replica_set["spec"]["template"]
        if same_templates(self._deployment["spec"]["template"], template, POD_TEMPLATE_HASH):
            text = f'The rollback revision contains the same template as current deployment "{name}"'
            self._event("Warning", "DeploymentRollbackTemplateUnchanged", text)
            await self._clear_rollback()
            return
        metadata = template.get("metadata") or {}
        labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}
        restored = {**template, "metadata": {**metadata, "labels": labels}}
        annotations = revisions.rolled_back_annotations(self._deployment, replica_set)
        rolled_back = revisions.with_annotations(self._deployment, annotations)
        self._deployment = {**rolled_back, "spec": {**rolled_back["spec"], "template": restored}}
        await self._clear_rollback()
        self._event("Normal", "DeploymentRollback", f'Rolled back deployment "{name}" to revision {number}')

    async def _clear_rollback(self) -> None:
        annotations = {**revisions.annotations_of(self._deployment)}
        annotations.pop(ROLLBACK_TO, None)
        self._deployment = await self._deployments.update(revisions.with_annotations(self._deployment, annotations))
        self._wrote(self._deployment)

    async def _clean_up(self) -> None:
        """Old replica sets beyond the limit go, the oldest first."""
        limit = self._deployment["spec"].get("revisionHistoryLimit", _UNLIMITED)
        if limit == _UNLIMITED:
            return
        kept = [old_set for old_set in self._old if not is_terminating(old_set)]
        kept.sort(key=lambda old_set: revisions.revision(old_set) or 0)
        for replica_set in kept[: max(0, len(kept) - limit)]:
            status, metadata = replica_set["status"], replica_set["metadata"]
            if (
                status.get("replicas", 0)
                or counts.spec_replicas(replica_set)
                or metadata["generation"] > status.get("observedGeneration", 0)
            ):
                continue
            try:
                await self._replica_sets.delete(metadata["name"])
            except StatusError as error:
                if not is_not_found(error):
                    raise

    # --------------------------------------------------------------------------- status

    async def _sync_status(self) -> None:
        status = conditions.calculate_status(self._deployment, self._everything, self._new, self._now)
        await self._write_status(status)

    async def _sync_rollout_status(self) -> Result | None:
        status = conditions.rollout_status(self._deployment, self._everything, self._new, self._now)
        if not await self._write_status(status):
            return self._next_progress_check(status)
        return None

    def _next_progress_check(self, status: Object) -> Result | None:
        """When nothing happens until then, the deadline is over."""
        condition = find_condition(status.get("conditions"), "Progressing")
        if (
            condition is None
            or not conditions.has_progress_deadline(self._deployment)
            or conditions.is_complete(self._deployment, status)
            or condition.get("reason") == conditions.TIMED_OUT
        ):
            return None
        left = conditions.deadline(self._deployment, condition) - self._now
        return Result(requeue=True) if left < _LATE else Result(requeue_after=left + _LATE)

    async def _write_status(self, status: Object) -> bool:
        """Reports whether it has changed."""
        if status == self._deployment["status"]:
            return False
        self._deployment = {**self._deployment, "status": status}
        await self._update_status()
        return True

    async def _update_status(self) -> None:
        self._deployment = await self._deployments.update_status(self._deployment)
        self._wrote(self._deployment)

    async def _try_update_status(self) -> None:
        """Writes the status where a failure to do so matters less than the error that is about to be raised."""
        try:
            await self._update_status()
        except StatusError as error:
            log.info("the status of deployment %s was not written: %s", self._deployment["metadata"]["name"], error)

    def _set_progressing(self, status: str, reason: str, message: str) -> None:
        condition = conditions.new_condition("Progressing", status, reason, message, self._now)
        with_progress = conditions.with_condition(self._deployment["status"], condition)
        self._deployment = {**self._deployment, "status": with_progress}

    def _set_revision(self, number: str) -> bool:
        """Reports whether the deployment's revision has changed; it is written with its status."""
        annotations = revisions.annotations_of(self._deployment)
        if annotations.get(REVISION) == number:
            return False
        self._deployment = revisions.with_annotations(self._deployment, {**annotations, REVISION: number})
        return True

    def _event(self, event_type: str, reason: str, message: str) -> None:
        self._recorder.event(self._deployment, event_type, reason, message)

    def _required_new(self) -> Object:
        assert self._new is not None
        return self._new
