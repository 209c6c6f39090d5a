"""The life of a pod on a node: its next status, and when to look again. Pure.

`next_status` is the whole interface. A container's own status is in container_status.py, the conditions in pod_conditions.py.

Upstream: pkg/kubelet/kubelet_pods.go (getPhase, convertToAPIContainerStatuses), pkg/kubelet/kuberuntime (restarts and back-off).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.nodes.behaviour import ContainerBehaviour
from fakeapiserver.nodes.commands import Process
from fakeapiserver.nodes.images import name_problem
from fakeapiserver.nodes.pod_lifecycle import resizing, restarts
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    Containers,
    are_initialized,
    digest,
    ended_at,
    exit_code,
    has_failed,
    is_removed,
    is_sidecar,
    last_exit_code,
    lost,
    new_status,
    removed,
    waiting,
)
from fakeapiserver.nodes.pod_lifecycle.events import NORMAL, WARNING, PodEvent, begun, full_name
from fakeapiserver.nodes.pod_lifecycle.pod_conditions import TERMINAL, pod_conditions
from fakeapiserver.nodes.pod_lifecycle.probing import Probes
from fakeapiserver.nodes.pod_lifecycle.termination import Ending, Stop, ending, hook_of

BehaviourOf = Callable[[str, bool], ContainerBehaviour]
# The reason and message why the node has no room for what the pod requests now; None if it has.
RoomFor = Callable[[Object], tuple[str, str] | None]
_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_GRACE: Final = 30.0
# Statuses have whole seconds, so what happened this long before the last look may not have been reported then.
_BLUR: Final = 1.0
# Seconds by which a sum of times may be wrong.
_NOISE: Final = 1e-5
_PULLING: Final = ("ErrImagePull", "ImagePullBackOff")


class PodLocation(Struct, frozen=True):
    """The node and the addresses of the pod."""

    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...]
    room_for: RoomFor = lambda pod: None


class TimedEvent(NamedTuple):
    """An event to report, and when it happened, in seconds since the epoch."""

    at: float
    event: PodEvent


class Span(Struct):
    """The exact times of a container's run, in seconds since the epoch: statuses have whole seconds only. `ended` None: it runs."""

    started: float
    ended: float | None = None


# By the container's name and the number of restarts before the run.
Spans = dict[tuple[str, int], Span]


class PodState(Struct):
    """The kubelet's knowledge about a pod besides its status; next_status updates it.

    - looked: the time of the last look, in seconds since the epoch.
    - `reported`: the events of the last second that are reported already.
    - allocated: the resources that it has given to each container.
    - forgiven: for each container, how many of its restarts don't count for its back-off any more.
    - pulls: for each container, how often it has tried to pull the image.
    - stop: why the node ends the pod.
    - spans: the present run of each container, and the one before it.
    """

    looked: float
    reported: frozenset[TimedEvent] = frozenset()
    allocated: resizing.Allocation = field(default_factory=dict)
    forgiven: dict[str, int] = field(default_factory=dict)
    pulls: dict[str, int] = field(default_factory=dict)
    stop: Stop | None = None
    spans: Spans = field(default_factory=dict)


class Next(Struct, frozen=True):
    """`status`: the new status; None if it stays as it is. `after`: seconds until something changes by itself. `gone`: the pod
    may be removed. `events`: the events since the last look."""

    status: Object | None
    after: float | None = None
    gone: bool = False
    events: tuple[PodEvent, ...] = ()


def next_status(pod: Object, place: PodLocation, behaviour_of: BehaviourOf, now: float, state: PodState) -> Next:
    """The next status of a pod at `now` (seconds since the epoch).

    `behaviour_of(container, main)` says what a container does; `main` is false for init containers, which end by default."""
    return _Pod(pod, place, behaviour_of, now, state).next()


class _Pod:
    def __init__(self, pod: Object, place: PodLocation, behaviour_of: BehaviourOf, now: float, state: PodState) -> None:
        self._pod = pod
        self._spec: Mapping[str, Any] = pod["spec"]
        self._old: Mapping[str, Any] = pod.get("status") or {}
        self._place = place
        self._behaviour_of = behaviour_of
        self._now = now
        self._state = state
        self._waits: list[float] = []
        self._timed_events: dict[TimedEvent, None] = {}  # a set in the order of reporting
        self._known = {
            status["name"]: status
            for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for status in self._old.get(kind) or ()
        }
        self._kinds = {spec["name"]: kind for kind in _KINDS for spec in self._spec.get(kind) or ()}
        self._ephemerals: list[Object] = []
        self._policy: str = self._spec.get("restartPolicy", "Always")
        self._grace = float(self._spec.get("terminationGracePeriodSeconds", _GRACE))
        self._resets = False
        self._resizing: dict[str, tuple[str, str]] = {}
        self._resizes = False

    def next(self) -> Next:
        following = self._next()
        recent = [one for one in self._timed_events if self._state.looked - _BLUR < one.at <= self._now]
        events = sorted((one for one in recent if one not in self._state.reported), key=lambda one: one.at)
        self._state.looked = self._now
        self._state.reported = frozenset(one for one in recent if one.at > self._now - _BLUR)
        later = [one.at - self._now for one in self._timed_events if one.at > self._now]
        after = min([*later, *([] if following.after is None else [following.after])], default=None)
        return Next(
            following.status, None if following.gone else after, following.gone, tuple(one.event for one in events)
        )

    def _next(self) -> Next:
        deleted = bool(self._pod["metadata"].get("deletionTimestamp"))
        if self._old.get("phase") in TERMINAL:
            return Next(None, gone=deleted)
        started = self._old.get("startTime") or rfc3339(self._now)
        since = seconds_of(started) or self._now
        stop = self._stop(since)
        if stop is not None:
            return self._stopped(stop, started)
        self._resize()
        inits = [*self._inits(since)]
        initialized = are_initialized(inits)
        failed = any(has_failed(status) and not self._restarts(spec, exit_code(status)) for spec, status in inits)
        base = max([since, *(ended_at(status) or 0.0 for _, status in inits)])
        mains = [
            (spec, self._container(spec, base, may_start=initialized and not failed, main=True, inits=bool(inits)))
            for spec in self._spec["containers"]
        ]
        self._ephemerals = [
            # Ephemeral containers run once, whatever the pod's restart policy is.
            self._container({**spec, "restartPolicy": "Never"}, base, may_start=True, main=True, inits=False)
            for spec in self._spec.get("ephemeralContainers") or ()
        ]
        if self._resets:
            inits, mains = ([(spec, removed(status)) for spec, status in some] for some in (inits, mains))
            self._waits.append(0.0)
        phase = self._phase([(spec, status) for spec, status in inits if not is_sidecar(spec)], mains)
        if phase not in TERMINAL:
            return self._as_status(inits, mains, started, self._phase(inits, mains))
        inits, left = self._without_sidecars(inits, mains)
        if left > 0:
            self._waits.append(left)
            phase = self._old.get("phase") or "Pending"
        return self._as_status(inits, mains, started, phase)

    # ------------------------------------------------------------------------- resize

    def _resize(self) -> None:
        """Allocates what the pod requests if there is room, and resizes its containers some time later."""
        state, asked = self._state, resizing.wanted(self._pod)
        state.allocated = state.allocated or resizing.known_allocation(self._pod, self._known)
        started = resizing.condition_of(self._pod, resizing.IN_PROGRESS)
        if asked != state.allocated:
            refusal = self._refusal()
            if refusal is not None:
                self._defer(*refusal)
            else:
                state.allocated, started = asked, None
                self._tell_resize(NORMAL, "ResizeStarted", "Pod resize started")
        running = {name: status for name, status in self._known.items() if "running" in status["state"]}
        late = [
            name for name, status in running.items() if status.get("resources", {}) != state.allocated.get(name, {})
        ]
        late = [name for name in late if name in state.allocated and "resources" in running[name]]
        if not late:
            if started is not None:
                self._tell_resize(NORMAL, "ResizeCompleted", "Pod resize completed")
            return
        behaviours = [self._behaviour_of(name, True) for name in late]
        error = next((behaviour.resize_error for behaviour in behaviours if behaviour.resize_error), "")
        since = self._now if started is None else seconds_of(started["lastTransitionTime"]) or self._now
        left = since + max(behaviour.resizes_after for behaviour in behaviours) - self._now
        if started is None or left > 0:
            self._waits.append(max(left, 0.0))
            self._resizing[resizing.IN_PROGRESS] = ("", "")
            return
        if error:
            self._resizing[resizing.IN_PROGRESS] = ("Error", error)
            if not started.get("reason"):
                self._tell_resize(WARNING, "ResizeError", "Pod resize error", error)
            return
        self._resizes = True
        self._tell_resize(NORMAL, "ResizeCompleted", "Pod resize completed")

    def _refusal(self) -> tuple[str, str] | None:
        """The reason and message why the pod can't be resized now; None if it can."""
        messages = (self._behaviour_of(name, True).resize_infeasible for name in self._kinds)
        infeasible = next((message for message in messages if message), "")
        return ("Infeasible", infeasible) if infeasible else self._place.room_for(self._pod)

    def _defer(self, reason: str, message: str) -> None:
        shown = "Infeasible" if reason == "Infeasible" else "Deferred"
        self._resizing[resizing.PENDING] = (shown, message)
        old = resizing.condition_of(self._pod, resizing.PENDING) or {}
        if (old.get("reason"), old.get("observedGeneration")) != (shown, self._pod["metadata"].get("generation")):
            self._tell_resize(WARNING, f"Resize{shown}", f"Pod resize {reason}", message)
        if shown == "Deferred":
            self._waits.append(resizing.RETRY_SECONDS)

    def _tell_resize(self, kind: str, reason: str, prefix: str, error: str = "") -> None:
        self._happens(self._now, PodEvent(kind, reason, resizing.summary(self._pod, prefix, error)))

    def _with_resources(self, status: Object, *, actual: bool) -> Object:
        """The container's status with the resources allocated to it. `actual`: the container has them already."""
        given = self._state.allocated.get(status["name"])
        if given is None:
            return status
        resized = {**status, "resources": given} if actual else dict(status)
        resized.pop("allocatedResources", None)
        return {**resized, "allocatedResources": given["requests"]} if given.get("requests") else resized

    # --------------------------------------------------------------------- containers

    def _inits(self, base: float) -> Iterator[tuple[Object, Object]]:
        """The init containers with their next statuses. They run one after the other; the next one may start when a sidecar has
        started."""
        may_start = True
        for spec in self._spec.get("initContainers") or ():
            status = self._container(spec, base, may_start=may_start, main=is_sidecar(spec), inits=True)
            done = status.get("started", False) if is_sidecar(spec) else exit_code(status) == 0
            may_start = may_start and done
            base = max(base, ended_at(status) or base)
            yield spec, status

    def _container(self, spec: Object, base: float, *, may_start: bool, main: bool, inits: bool) -> Object:
        """A container's next status. `base`: when it could start at the earliest."""
        behaviour = self._behaviour_of(spec["name"], main)
        old = self._known.get(spec["name"]) or new_status(spec)
        state = old["state"]
        if "terminated" in state:
            return self._after_end(spec, old, behaviour)
        if "running" in state:
            return self._running(spec, old, behaviour)
        reason = "PodInitializing" if inits else "ContainerCreating"
        again = bool(old.get("lastState"))
        if not may_start:
            return old if again else waiting(old, reason)
        fresh = not again or is_removed(old)
        due = base + behaviour.starts_after if fresh else self._now + self._back_off_left(old)
        if due > self._now:
            self._waits.append(due - self._now)
            return waiting(old, reason) if not again else old if fresh else self._backing_off(spec, old)
        if behaviour.pull_error:
            return self._not_pulled(spec, old, behaviour, due)
        return self._begin(spec, old, behaviour, old if again else waiting(old, reason), due)

    def _begin(self, spec: Object, old: Object, behaviour: ContainerBehaviour, meanwhile: Object, due: float) -> Object:
        """The status of a container that starts. `meanwhile`: its status while its postStart hook runs, since a container shows
        as running only after that."""
        hook = hook_of(spec, "postStart", behaviour.post_start)
        if hook is None:
            return self._begun(spec, old, behaviour, self._now)
        failed_at = due + hook.seconds
        end = ending(spec, behaviour, failed_at, self._grace) if hook.error else None
        left = (failed_at if end is None else end.at) - self._now
        if left > 0:
            self._waits.append(left)
            return meanwhile
        if end is None:
            return self._begun(spec, old, behaviour, self._now - hook.seconds)
        for event in begun(spec, self._path(spec)):
            self._happens(self._now, event)
        self._happens(self._now, PodEvent(WARNING, "FailedPostStartHook", "PostStartHook failed", self._path(spec)))
        self._happens(self._now, PodEvent(NORMAL, "Killing", "FailedPostStartHook", self._path(spec)))
        self._hook_fails(spec, end)
        was = self._begun(spec, old, behaviour, due)
        return self._after_end(spec, self._ended(was, end.exit_code), behaviour, problem=hook.error)

    def _begun(self, spec: Object, old: Object, behaviour: ContainerBehaviour, since: float) -> Object:
        again = bool(old.get("lastState")) and not is_removed(old)
        count = old["restartCount"] + (1 if again else 0)
        self._state.pulls.pop(spec["name"], None)
        self._state.spans[spec["name"], count] = Span(since)
        self._state.spans.pop((spec["name"], count - 2), None)
        status = {
            **old,
            "state": {"running": {"startedAt": rfc3339(since)}},
            "restartCount": count,
            "image": spec.get("image", ""),
            "imageID": f"{spec.get('image', '')}@sha256:{digest(spec.get('image', ''))}",
            "containerID": self._container_id(spec["name"], count),
        }
        status = self._with_resources(status, actual=True)
        if self._ends_unseen(spec, behaviour):
            for event in begun(spec, self._path(spec)):
                self._happens(self._now, event)
            return self._after_end(spec, self._ended(status, behaviour.exit_code(count), behaviour.message), behaviour)
        if behaviour.runs_for is not None:
            self._waits.append(behaviour.runs_for)
        return self._probed(spec, status, self._probes(spec, behaviour, since))

    def _ends_unseen(self, spec: Object, behaviour: ContainerBehaviour) -> bool:
        """Reports whether a command ends for good at once: a kubelet, which looks once a second, never sees such a container run."""
        is_over = behaviour.runs_for == 0.0 and isinstance(behaviour.log, Process)
        return is_over and not self._restarts(spec, behaviour.exit_codes[0])

    def _running(self, spec: Object, old: Object, behaviour: ContainerBehaviour) -> Object:
        since = self._started(old)
        given = self._state.allocated.get(spec["name"], {})
        if self._resizes and resizing.restarts_for(spec, old.get("resources") or {}, given):
            message = f"Container {spec['name']} resize requires restart"
            self._happens(self._now, PodEvent(NORMAL, "Killing", message, self._path(spec)))
            return self._after_end(spec, self._ended(old, behaviour.stop_exit_code), behaviour, again=True)
        old = self._with_resources(old, actual=self._resizes or "resources" not in old)
        probes = self._probes(spec, behaviour, since)
        self._unhealthy(spec, probes)
        end, restarts_ = self._end_of_run(spec, old, behaviour, since, probes)
        if end is None:
            return self._probed(spec, old, probes)
        if end.at > self._now + _NOISE:
            self._waits.append(end.at - self._now)
            return self._probed(spec, old, probes)
        message = "" if restarts_ is not None else behaviour.message
        status = self._ended(old, end.exit_code, message)
        self._span(old).ended = end.at
        return self._after_end(spec, status, behaviour, again=restarts_)

    def _span(self, status: Object) -> Span:
        """The exact times of the container's present run, as far as this kubelet knows them."""
        started = seconds_of((status["state"].get("running") or {}).get("startedAt", "")) or self._now
        key = (status["name"], status["restartCount"])
        span = self._state.spans.get(key)
        if span is None or not 0 <= span.started - started < 1:
            span = self._state.spans[key] = Span(started)
        return span

    def _started(self, status: Object) -> float:
        return self._span(status).started

    def _end_of_run(
        self, spec: Object, old: Object, behaviour: ContainerBehaviour, since: float, probes: Probes
    ) -> tuple[Ending | None, bool | None]:
        """When the run ends, by itself or because of a probe, and in the latter case whether the container restarts, whatever its
        exit code."""
        own = None
        if behaviour.runs_for is not None:
            own = Ending(since + behaviour.runs_for, behaviour.exit_code(old["restartCount"]))
        killed = probes.killed
        if killed is None or (own is not None and own.at <= killed.at):
            return own, None
        grace = spec[f"{killed.kind}Probe"].get("terminationGracePeriodSeconds")
        end = ending(spec, behaviour, killed.at, self._grace if grace is None else float(grace))
        again = (spec.get("restartPolicy") or self._policy) != "Never"
        what = "Init container" if self._kinds[spec["name"]] == "initContainers" else "Container"
        then = ", will be restarted" if again and what == "Container" else ""
        message = f"{what} {spec['name']} failed {killed.kind} probe{then}"
        self._happens(killed.at, PodEvent(NORMAL, "Killing", message, self._path(spec)))
        self._hook_fails(spec, end)
        return (own, None) if own is not None and own.at <= end.at else (end, again)

    def _probes(self, spec: Object, behaviour: ContainerBehaviour, since: float) -> Probes:
        return Probes(spec, behaviour, since, next(iter(self._place.pod_ips), ""))

    def _probed(self, spec: Object, status: Object, probes: Probes) -> Object:
        """The status with `started` and `ready` as the probes say."""
        self._waits += [at - self._now for at in probes.changes_after(self._now)]
        for at in (probes.next_failure(self._now), probes.killed.at if probes.killed else None):
            if at is not None and at > self._now:
                self._waits.append(at - self._now)
        ready = not self._is_init(spec) and probes.is_ready(self._now)
        return {**status, "ready": ready, "started": probes.started_at <= self._now}

    def _unhealthy(self, spec: Object, probes: Probes) -> None:
        for failure in probes.failures(self._state.looked - _BLUR, self._now):
            message = f"{failure.kind.capitalize()} probe failed: {failure.message}"
            self._happens(failure.at, PodEvent(WARNING, "Unhealthy", message, self._path(spec)))

    def _is_init(self, spec: Object) -> bool:
        """Reports whether it is an init container that has to end before others start."""
        return self._kinds[spec["name"]] == "initContainers" and not is_sidecar(spec)

    def _ended(self, old: Object, exit_code: int, message: str = "", at: float | None = None) -> Object:
        since = old["state"].get("running", {}).get("startedAt") or rfc3339(self._now)
        self._span(old).ended = self._now
        terminated: Object = {
            "exitCode": exit_code,
            "reason": "Completed" if exit_code == 0 else "Error",
            "startedAt": since,
            "finishedAt": rfc3339(self._now if at is None else at),
            "containerID": old.get("containerID", ""),
        }
        if message:
            terminated["message"] = message
        return {**old, "state": {"terminated": terminated}, "ready": False, "started": False}

    def _after_end(
        self,
        spec: Object,
        status: Object,
        behaviour: ContainerBehaviour,
        *,
        again: bool | None = None,
        problem: str = "",
    ) -> Object:
        """The status of a container that has ended: it stays so, or restarts after its back-off. `again`: whether it restarts, if
        that is decided already. `problem`: the error of its postStart hook."""
        terminated = status["state"]["terminated"]
        if not (self._restarts(spec, terminated["exitCode"]) if again is None else again):
            return {**status, "ready": terminated["exitCode"] == 0 and self._is_init(spec)}
        if spec.get("restartPolicy") and restarts.rule_of(spec, terminated["exitCode"]) == restarts.RESTART_ALL:
            self._resets = True
            return status
        over = {**status, "lastState": {"terminated": terminated}}
        if (ended_at(status) or 0.0) - (seconds_of(terminated["startedAt"]) or 0.0) > restarts.FORGIVEN_SECONDS:
            self._state.forgiven[spec["name"]] = status["restartCount"]
        left = self._back_off_left(over)
        if left > 0:
            self._waits.append(0.0 if problem else left)
            return waiting(over, "PostStartHookError", problem) if problem else self._backing_off(spec, over)
        if behaviour.pull_error:
            return self._not_pulled(spec, over, behaviour, self._now + left)
        return self._begin(spec, over, behaviour, status, self._now + left)

    def _backing_off(self, spec: Object, status: Object) -> Object:
        seconds = int(self._back_off(status))
        message = (
            f"back-off {_go_seconds(seconds)} restarting failed container={spec['name']} pod={full_name(self._pod)}"
        )
        return waiting(status, "CrashLoopBackOff", message)

    def _back_off_left(self, status: Object) -> float:
        ended = seconds_of(status["lastState"]["terminated"].get("finishedAt")) or 0.0
        return ended + self._back_off(status) - self._now

    def _back_off(self, status: Object) -> float:
        return restarts.back_off(status["restartCount"] - self._state.forgiven.get(status["name"], 0))

    def _not_pulled(self, spec: Object, old: Object, behaviour: ContainerBehaviour, due: float) -> Object:
        """The status of a container whose image can't be pulled: ErrImagePull right after each try, and then ImagePullBackOff."""
        image, name = spec.get("image", ""), spec["name"]
        if behaviour.pull_error == name_problem(image):
            return waiting(old, "InvalidImageName", behaviour.pull_error)
        if spec.get("imagePullPolicy") == "Never":
            absent = f'Container image "{image}" is not present with pull policy of Never'
            return waiting(old, "ErrImageNeverPull", absent)
        elapsed = self._now - due
        pulling = (old["state"].get("waiting") or {}).get("reason") in _PULLING
        if old.get("lastState") and not pulling:
            self._state.pulls.pop(name, None)
        count, at = restarts.tries(elapsed)
        is_new = self._state.pulls.get(name, 0) < count
        if name not in self._state.pulls and pulling:
            is_new = False  # an earlier kubelet has reported this try
        self._state.pulls[name] = count
        if is_new:
            self._waits.append(0.0)
            return waiting(old, "ErrImagePull", behaviour.pull_error)
        self._waits.append(due + at - self._now)
        message = f'Back-off pulling image "{image}": ErrImagePull: {behaviour.pull_error}'
        return waiting(old, "ImagePullBackOff", message)

    def _restarts(self, spec: Object, exit_code: int | None) -> bool:
        """Reports whether the container restarts after it has ended with this exit code."""
        is_init = self._is_init(spec)
        return exit_code is not None and restarts.restarts(spec, self._policy, exit_code, is_init=is_init)

    def _happens(self, at: float, event: PodEvent) -> None:
        self._timed_events[TimedEvent(at, event)] = None

    def _hook_fails(self, spec: Object, end: Ending) -> None:
        if end.hook_failed is not None:
            self._happens(
                end.hook_failed, PodEvent(WARNING, "FailedPreStopHook", "PreStopHook failed", self._path(spec))
            )

    def _path(self, spec: Object) -> str:
        return f"spec.{self._kinds[spec['name']]}{{{spec['name']}}}"

    # ------------------------------------------------------------------------ the pod

    def _phase(self, inits: Containers, mains: Containers) -> str:
        """The pod's phase (upstream: getPhase)."""
        pending = late = False
        for spec, status in inits:
            state, last = status["state"], last_exit_code(status)
            if is_sidecar(spec):
                late |= ("running" in state and not status.get("started")) or ("waiting" in state and last is None)
            elif "terminated" in state or ("waiting" in state and last is not None):
                code = exit_code(status) if "terminated" in state else last
                if code and not self._restarts(spec, code) and not is_removed(status):
                    return "Failed"
            else:
                pending = True
        unborn = any("waiting" in status["state"] and last_exit_code(status) is None for _, status in mains)
        begun_ = any("waiting" not in status["state"] or last_exit_code(status) is not None for _, status in mains)
        if pending or unborn or (late and not begun_):
            return "Pending"
        if any("running" in status["state"] for _, status in (*inits, *mains)):
            return "Running"
        codes = [
            (spec, exit_code(status) if "terminated" in status["state"] else last_exit_code(status), status)
            for spec, status in mains
        ]
        if any(self._restarts(spec, code) or is_removed(status) for spec, code, status in codes):
            return "Running"
        return "Succeeded" if all(exit_code(status) == 0 for _, status in mains) else "Failed"

    def _without_sidecars(
        self, inits: list[tuple[Object, Object]], mains: list[tuple[Object, Object]]
    ) -> tuple[list[tuple[Object, Object]], float]:
        """Stops the sidecars after all containers have ended. Returns the init containers and the seconds until they
        have ended, too.
        """
        over = max((at for _, status in (*inits, *mains) if (at := ended_at(status)) is not None), default=self._now)
        ends = self._endings(over, self._grace, [spec for spec, status in inits if "running" in status["state"]])
        left = max((end.at - self._now for end in ends.values()), default=0.0)
        if left > 0:
            return inits, left
        return [(spec, self._stopped_status(status, ends)) for spec, status in inits], 0.0

    def _endings(self, begun_at: float, grace: float, specs: Sequence[Object]) -> dict[str, Ending]:
        """Returns when and how the running containers end if they are stopped at `begun_at`: sidecars after all
        others, the last one first.
        """
        endings: dict[str, Ending] = {}
        sidecars = [spec for spec in specs if self._kinds[spec["name"]] == "initContainers" and is_sidecar(spec)]
        turn = 0.0
        for spec in (*(spec for spec in specs if spec not in sidecars), *reversed(sidecars)):
            name = spec["name"]
            if spec in sidecars:
                turn = max([turn, *(end.at for other, end in endings.items() if self._kinds[other] == "containers")])
            behaviour = self._behaviour_of(name, not self._is_init(spec))
            end = ending(spec, behaviour, begun_at, grace, turn)
            status = self._known.get(name)
            if status is not None and behaviour.runs_for is not None and "running" in status["state"]:
                own = self._started(status) + behaviour.runs_for
                if begun_at < own < end.at:
                    end = Ending(own, behaviour.exit_code(status["restartCount"]), end.hook_failed)
            if spec in sidecars:
                turn = end.at
            endings[name] = end
            self._happens(begun_at, PodEvent(NORMAL, "Killing", f"Stopping container {name}", self._path(spec)))
            self._hook_fails(spec, end)
        return endings

    def _stop(self, since: float) -> Stop | None:
        """Why the pod has to end now: it was deleted, its deadline has passed, or its node stops it. None: it goes on."""
        metadata = self._pod["metadata"]
        stops = [] if self._state.stop is None else [self._state.stop]
        deadline = self._spec.get("activeDeadlineSeconds")
        if deadline is not None:
            message = "Pod was active on the node longer than the specified deadline"
            stops.append(Stop(since + deadline, self._grace, "DeadlineExceeded", message))
            self._happens(since + deadline, PodEvent(NORMAL, "DeadlineExceeded", message))
        if (at := metadata.get("deletionTimestamp")) is not None:
            grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
            stops.append(Stop((seconds_of(at) or self._now) - grace, grace, "", ""))
        begun_ = (stop for stop in stops if stop.begun <= self._now)
        return min(begun_, key=lambda stop: stop.begun + stop.grace, default=None)

    def _stopped(self, stop: Stop, started: str) -> Next:
        """Returns the next status of a pod that is stopping: its containers end, each in its time, and then it may be removed."""
        deleted = bool(self._pod["metadata"].get("deletionTimestamp"))
        kinds = {kind: [*(self._spec.get(kind) or ())] for kind in _KINDS}
        running = [
            spec
            for specs in kinds.values()
            for spec in specs
            if "running" in self._known.get(spec["name"], {}).get("state", {})
        ]
        ends = self._endings(stop.begun, stop.grace, running)
        left = max((end.at - self._now for end in ends.values()), default=0.0)
        if left > 0:
            return Next(None, left)
        if not self._known and not stop.reason:
            return Next(None, gone=deleted)
        state = {
            kind: [
                (spec, self._stopped_status(self._known.get(spec["name"]) or new_status(spec), ends)) for spec in specs
            ]
            for kind, specs in kinds.items()
        }
        inits, mains = state["initContainers"], state["containers"]
        has_begun = not inits or any("waiting" not in status["state"] for _, status in mains)
        if has_begun:
            mains = [(spec, lost(status) if "waiting" in status["state"] else status) for spec, status in mains]
        self._ephemerals = [status for _, status in state["ephemeralContainers"]]
        succeeded = not stop.reason and all(exit_code(status) == 0 for _, status in mains)
        shown = self._as_status(inits, mains, started, "Succeeded" if succeeded else "Failed", stop)
        return Next(shown.status, gone=deleted)

    def _stopped_status(self, status: Object, ends: Mapping[str, Ending]) -> Object:
        """The status of a container in a stopped pod. One that was waiting to restart shows the end of its last run."""
        if "running" in status["state"]:
            end = ends[status["name"]]
            return self._ended(status, end.exit_code, at=end.at)
        if "waiting" in status["state"] and status.get("lastState"):
            return {**status, "state": status["lastState"], "lastState": {}, "ready": False, "started": False}
        return status

    def _as_status(
        self,
        inits: Containers,
        mains: Containers,
        started: str,
        phase: str,
        stop: Stop | None = None,
    ) -> Next:
        status: Object = {
            "phase": phase,
            "startTime": started,
            "hostIP": self._place.host_ips[0],
            "hostIPs": [{"ip": ip} for ip in self._place.host_ips],
            "podIP": next(iter(self._place.pod_ips), ""),
            "podIPs": [{"ip": ip} for ip in self._place.pod_ips],
            "qosClass": self._old.get("qosClass", "BestEffort"),
            "conditions": pod_conditions(self._pod, inits, mains, phase, self._now, resizes=self._resizing, stop=stop),
            "containerStatuses": sorted(
                (container_status for _, container_status in mains),
                key=lambda container_status: str(container_status["name"]),
            ),
        }
        if stop is not None and stop.reason:
            status |= {"reason": stop.reason, "message": stop.message}
        if generation := self._pod["metadata"].get("generation"):
            status["observedGeneration"] = generation
        if inits:
            status["initContainerStatuses"] = [container_status for _, container_status in inits]
        if self._ephemerals:
            status["ephemeralContainerStatuses"] = self._ephemerals
        same = all(self._old.get(key) == value for key, value in status.items())
        after = min(self._waits, default=None)
        return Next(None if same else status, after)

    def _container_id(self, name: str, restarts_: int) -> str:
        return f"containerd://{digest(self._pod['metadata']['uid'], name, str(restarts_))}"


def _go_seconds(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
