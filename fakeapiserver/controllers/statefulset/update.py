"""Brings a stateful set closer to the wanted state (upstream: pkg/controller/statefulset/stateful_set_control.go)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_conflict
from fakeapiserver.component_helpers.objects import STATEFUL_SETS, is_terminating, key_of
from fakeapiserver.component_helpers.pods import is_pod_available, pod_phase
from fakeapiserver.component_helpers.workloads.history import (
    ControllerHistory,
    equal_revisions,
    new_revision,
    next_revision_number,
    sorted_revisions,
)
from fakeapiserver.component_helpers.workloads.int_or_percent import scaled_value
from fakeapiserver.component_helpers.workloads.pod_control import SLOW_START_INITIAL_BATCH_SIZE, slow_start_batch
from fakeapiserver.component_helpers.workloads.pod_template import semantically_equal
from fakeapiserver.controllers.statefulset import identity
from fakeapiserver.controllers.statefulset.identity import KIND
from fakeapiserver.controllers.statefulset.pod_control import StatefulPodControl

_MAX_TRIES: Final = 5
# What a status counts; it is written when one of them has changed. Go leaves out the zeroes of the second line.
_ALWAYS: Final = ("replicas", "availableReplicas")
_UNLESS_ZERO: Final = ("readyReplicas", "currentReplicas", "updatedReplicas")

# Does something about the pod of an index; whether nothing more is to be done this time.
_Process = Callable[[int], Awaitable[bool]]


class UpdateTools(Struct, frozen=True):
    """The parts of the controller that each sync uses. `wrote` is called with a new status."""

    client: DynamicClient
    control: StatefulPodControl
    history: ControllerHistory
    sets: Indexer
    wrote: Callable[[Object], None]
    feature_gates: FeatureGates


class StatefulSetUpdate:
    """Performs a single sync of a stateful set. Raises what pod control and the server raise."""

    def __init__(
        self,
        tools: UpdateTools,
        stateful_set: Object,
        pods: Sequence[Object],
        now: float,
    ) -> None:
        self._client = tools.client
        self._control = tools.control
        self._history = tools.history
        self._sets = tools.sets
        self._wrote = tools.wrote
        self._gates = tools.feature_gates
        self._set = stateful_set
        self._pods = pods
        self._now = now
        self._min_ready: int = stateful_set["spec"].get("minReadySeconds", 0)
        self._monotonic: bool = stateful_set["spec"].get("podManagementPolicy") != "Parallel"
        self._current: Object = {}
        self._update: Object = {}
        self._collisions = 0

    async def run(self, selector: Selector) -> Object:
        """The set's status then."""
        revisions = sorted_revisions(self._history.list(self._set, KIND, selector))
        try:
            await self._find_revisions(revisions)
            status: Object = self._status(self._pods)
            failure: Exception | None = None
            try:
                status = await self._update_pods()
            except _Stopped as stopped:
                status, failure = stopped.status, stopped.failure
            await self._write_status(status, failure)
        finally:
            await self._truncate_history(revisions)
        if failure is not None:
            raise failure
        return status

    # ---------------------------------------------------------------------- revisions

    async def _find_revisions(self, revisions: Sequence[Object]) -> None:
        """The revision of the set's template, which may be a new one, and the one that pods came from so far."""
        status, template = self._set["status"], self._set["spec"]["template"]
        self._collisions = status.get("collisionCount", 0)
        data: Object = {"spec": {"template": {**template, "$patch": "replace"}}}
        equal = equal_revisions(revisions, {"data": data})
        if equal and equal[-1]["data"] == revisions[-1]["data"]:
            self._update = revisions[-1]
        elif equal:
            self._update = await self._history.update(equal[-1], next_revision_number(revisions))
        elif revisions and semantically_equal(revisions[-1].get("data"), data):
            self._update = revisions[-1]
        else:
            labels = (template.get("metadata") or {}).get("labels") or {}
            number = next_revision_number(revisions)
            new = new_revision(self._set, KIND, labels, data, number, self._collisions)
            if annotations := self._set["metadata"].get("annotations"):
                new["metadata"]["annotations"] = annotations
            self._update, self._collisions = await self._history.create(self._set, new, self._collisions)
        name = status.get("currentRevision")
        self._current = next((revision for revision in revisions if revision["metadata"]["name"] == name), self._update)

    async def _truncate_history(self, revisions: Sequence[Object]) -> None:
        """Deletes unused revisions beyond the limit, the oldest first."""
        live = {identity.revision_of(pod) for pod in self._pods}
        live |= {
            controller_revision["metadata"]["name"]
            for controller_revision in (self._current, self._update)
            if controller_revision
        }
        unused = [
            controller_revision
            for controller_revision in revisions
            if controller_revision["metadata"]["name"] not in live
        ]
        limit: int = self._set["spec"].get("revisionHistoryLimit", 10)
        if limit >= 0:
            for revision in unused[: max(0, len(unused) - limit)]:
                await self._history.delete(revision)

    # --------------------------------------------------------------------------- pods

    async def _update_pods(self) -> Object:
        """The status. _Stopped where something has to be waited for, or failed."""
        replicas, condemned = self._sorted_out()
        unhealthy = [*replicas, *reversed(condemned)]
        first = next(filter(self._is_unavailable, unhealthy), None)
        if is_terminating(self._set):
            return self._status(self._pods)
        updated = self._at_update_revision()

        async def fix_claims(index: int) -> bool:
            if not self._control.claims_match(updated, condemned[index]):
                await self._control.update_claims(updated, condemned[index])
            return False

        steps: Sequence[tuple[int, _Process]] = (
            (len(replicas), lambda index: self._process_replica(updated, replicas[index])),
            (len(condemned), fix_claims),
            (len(condemned), lambda index: self._process_condemned(condemned[index], first)),
        )
        for count, process in steps:
            stop, failure = await self._for_all(count, process)
            if stop:
                raise _Stopped(self._status([*replicas, *condemned]), failure)
        status = self._status([*replicas, *condemned])
        if self._set["spec"]["updateStrategy"].get("type") != "OnDelete":
            await self._roll(replicas, status)
        return status

    def _sorted_out(self) -> tuple[Sequence[Object], list[Object]]:
        """(the pods that are wanted by their ordinals, new ones among them; those that are too many, the last first)."""
        wanted = identity.ordinals(self._set)
        by_ordinal = {identity.ordinal_of(pod): pod for pod in self._pods}
        condemned = [pod for ordinal, pod in by_ordinal.items() if ordinal >= 0 and ordinal not in wanted]
        condemned.sort(key=identity.ordinal_of, reverse=True)
        return [by_ordinal.get(ordinal) or self._new_pod(ordinal) for ordinal in wanted], condemned

    def _new_pod(self, ordinal: int) -> Object:
        revision = self._current if identity.uses_current_revision(self._set, ordinal) else self._update
        return identity.new_pod(self._set, _template(revision), revision["metadata"]["name"], ordinal)

    def _at_update_revision(self) -> Object:
        return {**self._set, "spec": {**self._set["spec"], "template": _template(self._update)}}

    async def _for_all(self, count: int, process: _Process) -> tuple[bool, Exception | None]:
        """(whether to stop, why): one after another, or in parallel whatever they say."""
        if not self._monotonic:
            indexes = iter(range(count))
            _, failure = await slow_start_batch(count, SLOW_START_INITIAL_BATCH_SIZE, lambda: process(next(indexes)))
            return failure is not None, failure
        for index in range(count):
            try:
                if await process(index):
                    return True, None
            except Exception as error:
                return True, error
        return False, None

    async def _process_replica(self, updated: Object, pod: Object) -> bool:
        phase = pod_phase(pod)
        if phase in ("Failed", "Succeeded"):
            if not is_terminating(pod):
                await self._control.delete(self._set, pod)
            return True
        if not phase:
            if self._control.has_stale_claim(self._set, pod):
                return True
            await self._control.create(self._set, pod)
            if self._monotonic:
                return True
        if phase == "Pending":
            await self._control.create_missing_claims(self._set, pod)
        if self._monotonic and (
            is_terminating(pod) or not identity.is_running_and_ready(pod) or not self._is_available(pod)
        ):
            return True
        conforms = identity.identity_matches(self._set, pod) and identity.storage_matches(self._set, pod)
        if not (conforms and self._control.claims_match(updated, pod)):
            await self._control.update(updated, pod)
        return False

    async def _process_condemned(self, pod: Object, first_unhealthy: Object | None) -> bool:
        if is_terminating(pod):
            return self._monotonic
        healthy = identity.is_running_and_ready(pod) and self._is_available(pod)
        if not self._monotonic or healthy or pod is first_unhealthy:
            await self._control.delete(self._set, pod)
        return True

    async def _roll(self, replicas: Sequence[Object], status: Object) -> None:
        """Deletes pods of other revisions, the last first, up to the partition."""
        rolling = self._set["spec"]["updateStrategy"].get("rollingUpdate") or {}
        behind = [*reversed(replicas[rolling.get("partition", 0) :])]
        if not self._gates.enabled("MaxUnavailableStatefulSet"):
            await self._replace_one(behind, status)
            return
        most = max(scaled_value(rolling.get("maxUnavailable", 1), len(replicas), round_up=False), 1)
        spare = most - sum(map(self._is_unavailable, replicas))
        update = status["updateRevision"]
        outdated = [pod for pod in behind if identity.revision_of(pod) != update and not is_terminating(pod)]
        if not self._monotonic:
            # those that are unavailable anyway cost nothing
            for pod in filter(self._is_unavailable, outdated):
                await self._delete_for_update(pod, status)
            outdated = [pod for pod in outdated if not self._is_unavailable(pod)]
        for pod in outdated[: max(spare, 0)]:
            await self._delete_for_update(pod, status)

    async def _replace_one(self, behind: Sequence[Object], status: Object) -> None:
        """Deletes the first pod of another revision, once all before it are available."""
        for pod in behind:
            if identity.revision_of(pod) != status["updateRevision"] and not is_terminating(pod):
                await self._delete_for_update(pod, status)
                return
            if self._is_unavailable(pod):
                return

    def _is_unavailable(self, pod: Object) -> bool:
        return identity.is_unavailable(pod, self._min_ready, self._now)

    async def _delete_for_update(self, pod: Object, status: Object) -> None:
        try:
            await self._control.delete(self._set, pod)
        except StatusError as error:
            raise _Stopped(status, error) from error
        status["currentReplicas"] = status.get("currentReplicas", 0) - 1
        if not status["currentReplicas"]:
            del status["currentReplicas"]

    def _is_available(self, pod: Object) -> bool:
        return is_pod_available(pod, self._min_ready, self._now)

    # ------------------------------------------------------------------------- status

    def _status(self, pods: Sequence[Object]) -> Object:
        current, update = self._current["metadata"]["name"], self._update["metadata"]["name"]
        there = [pod for pod in pods if identity.is_created(pod)]
        ready = [pod for pod in there if identity.is_running_and_ready(pod)]
        revisions = [identity.revision_of(pod) for pod in there if not is_terminating(pod)]
        counts = {
            "replicas": len(there),
            "readyReplicas": len(ready),
            "availableReplicas": sum(map(self._is_available, ready)),
            "currentReplicas": revisions.count(current),
            "updatedReplicas": revisions.count(update),
        }
        return {
            "observedGeneration": self._set["metadata"]["generation"],
            **{name: count for name, count in counts.items() if count or name in _ALWAYS},
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": self._collisions,
        }

    async def _write_status(self, status: Object, failure: Exception | None) -> None:
        """Writes the status; an earlier failure takes precedence over one of this write."""
        if self._set["spec"]["updateStrategy"].get("type") == "RollingUpdate" or self._gates.at_least("v1.37"):
            _complete_update(self._set, status)
        if not _is_inconsistent(self._set["status"], status):
            return
        current = self._set
        sets = self._client.resource(STATEFUL_SETS, current["metadata"]["namespace"])
        for attempt in range(_MAX_TRIES):
            try:
                self._wrote(await sets.update_status({**current, "status": status}))
                return
            except StatusError as error:
                if not is_conflict(error) or attempt == _MAX_TRIES - 1:
                    if failure is not None:
                        return
                    raise
                current = self._sets.get_by_key(key_of(current)) or current


class _Stopped(Exception):
    """Ends the sync early; `failure` is the reason, if it is a failure."""

    def __init__(self, status: Object, failure: Exception | None) -> None:
        super().__init__(str(failure))
        self.status = status
        self.failure = failure


def _template(revision: Object) -> Object:
    template: Object = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def _complete_update(stateful_set: Object, status: Object) -> None:
    """With every pod updated and ready, what was the update is what is current."""
    desired = stateful_set["spec"]["replicas"]
    if all(status.get(name, 0) == desired for name in ("updatedReplicas", "readyReplicas", "replicas")):
        status["currentRevision"] = status["updateRevision"]
        if desired:
            status["currentReplicas"] = desired


def _is_inconsistent(known: Object, status: Object) -> bool:
    names = (*_ALWAYS, *_UNLESS_ZERO)
    return (
        status["observedGeneration"] > known.get("observedGeneration", 0)
        or any(status.get(name, 0) != known.get(name, 0) for name in names)
        or any(status[name] != known.get(name, "") for name in ("currentRevision", "updateRevision"))
    )
