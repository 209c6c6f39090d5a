"""What becomes of a pod on a node: its next status, and when to look again. Pure.

Upstream: pkg/kubelet/kubelet_pods.go (getPhase, convertToAPIContainerStatuses), pkg/kubelet/status/generate.go (conditions),
pkg/kubelet/kuberuntime (restarts and their back-off).
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.nodes.behaviour import ContainerBehaviour

BehaviourOf = Callable[[str, bool], ContainerBehaviour]
_BACK_OFF: Final = 10.0
_MAX_BACK_OFF: Final = 300.0
# Who ran so long is forgiven its restarts.
_FORGIVEN: Final = 2 * _MAX_BACK_OFF
_OURS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pod is."""

    host_ip: str
    pod_ip: str


@dataclass(frozen=True, slots=True)
class Next:
    """`status`: None when it is as it should be. `after`: seconds until something changes by itself. `gone`: the pod may go."""

    status: Object | None
    after: float | None = None
    gone: bool = False


def next_status(pod: Object, place: Place, behaviour_of: BehaviourOf, now: float) -> Next:
    """`behaviour_of(container, main)`; `now` in seconds since the epoch."""
    return _Pod(pod, place, behaviour_of, now).next()


class _Pod:
    def __init__(self, pod: Object, place: Place, behaviour_of: BehaviourOf, now: float) -> None:
        self._pod = pod
        self._spec: Mapping[str, Any] = pod["spec"]
        self._old: Mapping[str, Any] = pod.get("status") or {}
        self._place = place
        self._behaviour_of = behaviour_of
        self._now = now
        self._waits: list[float] = []
        self._known = {
            status["name"]: status
            for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for status in self._old.get(kind) or ()
        }
        self._ephemerals: list[Object] = []
        self._policy: str = self._spec.get("restartPolicy", "Always")

    def next(self) -> Next:
        metadata = self._pod["metadata"]
        if self._old.get("phase") in TERMINAL:
            return Next(None, gone=bool(metadata.get("deletionTimestamp")))
        if metadata.get("deletionTimestamp"):
            return self._stopped()
        started = self._old.get("startTime") or rfc3339(self._now)
        inits = [*self._inits(seconds_of(started) or self._now)]
        initialized = self._are_initialized(inits)
        failed = any(_failed(status) and not self._restarts(spec, _exit_code(status)) for spec, status in inits)
        base = max([seconds_of(started) or self._now, *(_ended(status) or 0.0 for _, status in inits)])
        mains = [
            (spec, self._container(spec, base, may_start=initialized and not failed, main=True, inits=bool(inits)))
            for spec in self._spec["containers"]
        ]
        self._ephemerals = [
            # they run once, whatever the pod does
            self._container({**spec, "restartPolicy": "Never"}, base, may_start=True, main=True, inits=False)
            for spec in self._spec.get("ephemeralContainers") or ()
        ]
        deadline = self._spec.get("activeDeadlineSeconds")
        if deadline is not None:
            left = (seconds_of(started) or self._now) + deadline - self._now
            if left <= 0:
                return self._deadline_exceeded(inits, mains, started)
            self._waits.append(left)
        phase = self._phase(inits, mains, initialized=initialized)
        if phase in TERMINAL:  # sidecars have nothing left to stand beside
            inits = [
                (spec, self._ended(status, 0) if "running" in status["state"] else status) for spec, status in inits
            ]
        return self._as_status(inits, mains, started, phase)

    # --------------------------------------------------------------------- containers

    def _inits(self, base: float) -> Iterator[tuple[Object, Object]]:
        """One after the other; a sidecar goes on, and lets the next begin when it has started."""
        may_start = True
        for spec in self._spec.get("initContainers") or ():
            status = self._container(spec, base, may_start=may_start, main=_is_sidecar(spec), inits=True)
            done = status.get("started", False) if _is_sidecar(spec) else _exit_code(status) == 0
            may_start = may_start and done
            base = max(base, _ended(status) or base)
            yield spec, status

    def _container(self, spec: Object, base: float, *, may_start: bool, main: bool, inits: bool) -> Object:
        """Its next status. `base`: when it could begin."""
        name: str = spec["name"]
        behaviour = self._behaviour_of(name, main)
        old = self._known.get(name) or _new_status(spec)
        state = old["state"]
        if "terminated" in state:
            return self._after_end(spec, old, behaviour)
        if "running" in state:
            return self._running(spec, old, behaviour)
        if not may_start:
            reason = "PodInitializing" if inits else "ContainerCreating"
            return old if "waiting" in state and "lastState" in old and old["lastState"] else _waiting(old, reason)
        if behaviour.pull_error:
            return self._not_pulled(old, behaviour)
        if old.get("lastState"):
            left = self._back_off_left(old)
            if left > 0:
                self._waits.append(left)
                return old
            return self._begun(spec, old, behaviour)
        left = base + behaviour.starts_after - self._now
        if left > 0:
            self._waits.append(left)
            return _waiting(old, "PodInitializing" if inits else "ContainerCreating")
        return self._begun(spec, old, behaviour)

    def _begun(self, spec: Object, old: Object, behaviour: ContainerBehaviour) -> Object:
        restarts = old["restartCount"] + (1 if old.get("lastState") else 0)
        status = {
            **old,
            "state": {"running": {"startedAt": rfc3339(self._now)}},
            "restartCount": restarts,
            "image": spec.get("image", ""),
            "imageID": f"{spec.get('image', '')}@sha256:{_digest(spec.get('image', ''))}",
            "containerID": self._container_id(spec["name"], restarts),
        }
        if behaviour.runs_for is not None:
            self._waits.append(behaviour.runs_for)
        return self._probed(spec, status, behaviour, self._now)

    def _running(self, spec: Object, old: Object, behaviour: ContainerBehaviour) -> Object:
        since = seconds_of(old["state"]["running"]["startedAt"]) or self._now
        if behaviour.runs_for is not None:
            left = since + behaviour.runs_for - self._now
            if left <= 0:
                ended = self._ended(old, behaviour.exit_code(old["restartCount"]), behaviour.message)
                return self._after_end(spec, ended, behaviour)
            self._waits.append(left)
        if (killed_at := self._killed_at(spec, behaviour, since)) is not None:
            left = killed_at - self._now
            if left <= 0:
                return self._after_end(spec, self._ended(old, 137), behaviour)
            self._waits.append(left)
        return self._probed(spec, old, behaviour, since)

    def _probed(self, spec: Object, status: Object, behaviour: ContainerBehaviour, since: float) -> Object:
        """Whether it has started and is ready, as its probes say; the others are asked once it has started."""
        left = since + _started_after(spec, behaviour) - self._now
        if 0 < left < math.inf:
            self._waits.append(left)
        ready = left <= 0 and self._is_ready(spec, behaviour, since)
        return {**status, "ready": ready, "started": left <= 0}

    @staticmethod
    def _killed_at(spec: Object, behaviour: ContainerBehaviour, since: float) -> float | None:
        """When its startup or liveness probe has failed often enough; None: they don't."""
        startup, liveness = spec.get("startupProbe"), spec.get("livenessProbe")
        if startup is not None and _started_after(spec, behaviour) > (patience := _patience(startup)):
            return since + float(startup.get("initialDelaySeconds", 0)) + patience
        if liveness is not None and behaviour.unhealthy_after is not None:
            return since + behaviour.unhealthy_after + _patience(liveness)
        return None

    def _is_init(self, spec: Object) -> bool:
        """It has to end before others begin."""
        return spec in (self._spec.get("initContainers") or ()) and not _is_sidecar(spec)

    def _is_ready(self, spec: Object, behaviour: ContainerBehaviour, since: float) -> bool:
        if self._is_init(spec):
            return False
        if not spec.get("readinessProbe"):
            return behaviour.ready_after == 0.0
        if behaviour.ready_after is None:
            return False
        left = since + behaviour.ready_after - self._now
        if left > 0:
            self._waits.append(left)
        return left <= 0

    def _ended(self, old: Object, exit_code: int, message: str = "") -> Object:
        since = old["state"].get("running", {}).get("startedAt") or rfc3339(self._now)
        terminated: Object = {
            "exitCode": exit_code,
            "reason": "Completed" if exit_code == 0 else "Error",
            "startedAt": since,
            "finishedAt": rfc3339(self._now),
            "containerID": old.get("containerID", ""),
        }
        if message:
            terminated["message"] = message
        return {**old, "state": {"terminated": terminated}, "ready": False, "started": False}

    def _after_end(self, spec: Object, status: Object, behaviour: ContainerBehaviour) -> Object:
        """It stays as it ended, or begins again: at once the first time, then later with each."""
        terminated = status["state"]["terminated"]
        if not self._restarts(spec, terminated["exitCode"]):
            ready = terminated["exitCode"] == 0 and self._is_init(spec)
            return {**status, "ready": ready}
        again = {**status, "lastState": {"terminated": terminated}}
        left = self._back_off_left(again)
        if left <= 0 and not behaviour.pull_error:
            return self._begun(spec, again, behaviour)
        self._waits.append(max(left, 0.0))
        seconds = int(self._back_off(status["restartCount"]))
        message = f"back-off {_go_seconds(seconds)} restarting failed container={spec['name']} pod={self._full_name}"
        return _waiting(again, "CrashLoopBackOff", message)

    def _back_off_left(self, status: Object) -> float:
        last = status["lastState"]["terminated"]
        ended, began = seconds_of(last["finishedAt"]) or 0.0, seconds_of(last["startedAt"]) or 0.0
        if ended - began >= _FORGIVEN:
            return 0.0
        return ended + self._back_off(status["restartCount"]) - self._now

    @staticmethod
    def _back_off(restarts: int) -> float:
        return min(_BACK_OFF * 2.0 ** (restarts - 1), _MAX_BACK_OFF) if restarts else 0.0

    def _not_pulled(self, old: Object, behaviour: ContainerBehaviour) -> Object:
        waiting = old["state"].get("waiting") or {}
        if waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff"):
            image = old["image"]
            return _waiting(old, "ImagePullBackOff", f'Back-off pulling image "{image}": {behaviour.pull_error}')
        return _waiting(old, "ErrImagePull", behaviour.pull_error)

    def _restarts(self, spec: Object, exit_code: int | None) -> bool:
        """Whether it begins again after it has ended so."""
        policy = spec.get("restartPolicy") or self._policy
        if policy == "Always" and self._is_init(spec):
            policy = "OnFailure"
        return policy == "Always" or (policy == "OnFailure" and exit_code != 0)

    # ------------------------------------------------------------------------ the pod

    def _are_initialized(self, inits: Sequence[tuple[Object, Object]]) -> bool:
        return all(
            bool(status.get("started")) if _is_sidecar(spec) else _exit_code(status) == 0 for spec, status in inits
        )

    def _phase(
        self, inits: Sequence[tuple[Object, Object]], mains: Sequence[tuple[Object, Object]], *, initialized: bool
    ) -> str:
        if not initialized:
            broken = any(_failed(status) and not self._restarts(spec, _exit_code(status)) for spec, status in inits)
            return "Failed" if broken else "Pending"
        states = [status for _, status in mains]
        if any("waiting" in status["state"] and not status.get("lastState") for status in states):
            return "Pending"
        if any("running" in status["state"] or status.get("lastState") for status in states if not _is_over(status)):
            return "Running"
        if any(self._restarts(spec, _exit_code(status)) for spec, status in mains):
            return "Running"
        return "Succeeded" if all(_exit_code(status) == 0 for status in states) else "Failed"

    def _stopped(self) -> Next:
        """Told to stop: containers end in their time, then the pod may go."""
        metadata = self._pod["metadata"]
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        told = (seconds_of(metadata["deletionTimestamp"]) or self._now) - grace
        inits = [
            (spec, *self._told_to_stop(spec, told, grace, main=False))
            for spec in self._spec.get("initContainers") or ()
        ]
        mains = [(spec, *self._told_to_stop(spec, told, grace, main=True)) for spec in self._spec["containers"]]
        left = max(wait for _, _, wait in (*inits, *mains))
        if left > 0:
            return Next(None, left)
        if not self._known:
            return Next(None, gone=True)
        phase = "Succeeded" if all(_exit_code(status) == 0 for _, status, _ in mains) else "Failed"
        shown = self._as_status(
            [(spec, status) for spec, status, _ in inits],
            [(spec, status) for spec, status, _ in mains],
            self._old.get("startTime") or rfc3339(self._now),
            phase,
        )
        return Next(shown.status, gone=True)

    def _told_to_stop(self, spec: Object, told: float, grace: float, *, main: bool) -> tuple[Object, float]:
        """Its status, and the seconds it still needs."""
        status = self._known.get(spec["name"]) or _new_status(spec)
        if "waiting" in status["state"] and status.get("lastState"):
            return self._ended(status, 137), 0.0
        if "running" not in status["state"]:
            return status, 0.0
        behaviour = self._behaviour_of(spec["name"], main)
        left = told + min(behaviour.stops_after, grace) - self._now
        if left > 0:
            return status, left
        return self._ended(status, 137 if behaviour.stops_after > grace else behaviour.stop_exit_code), 0.0

    def _deadline_exceeded(
        self, inits: Sequence[tuple[Object, Object]], mains: Sequence[tuple[Object, Object]], started: str
    ) -> Next:
        """The node ends what takes longer than the pod may."""

        def stopped(status: Object) -> Object:
            return self._ended(status, 137) if "running" in status["state"] else status

        found = self._as_status(
            [(spec, stopped(status)) for spec, status in inits],
            [(spec, stopped(status)) for spec, status in mains],
            started,
            "Failed",
        )
        assert found.status is not None
        message = "Pod was active on the node longer than the specified deadline"
        return Next({**found.status, "reason": "DeadlineExceeded", "message": message})

    def _as_status(
        self,
        inits: Sequence[tuple[Object, Object]],
        mains: Sequence[tuple[Object, Object]],
        started: str,
        phase: str,
    ) -> Next:
        host, ip = self._place.host_ip, self._place.pod_ip
        status: Object = {
            "phase": phase,
            "startTime": started,
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "qosClass": self._old.get("qosClass", "BestEffort"),
            "conditions": self._conditions(inits, mains, phase),
            "containerStatuses": [found for _, found in mains],
        }
        if generation := self._pod["metadata"].get("generation"):
            status["observedGeneration"] = generation
        if inits:
            status["initContainerStatuses"] = [found for _, found in inits]
        if self._ephemerals:
            status["ephemeralContainerStatuses"] = self._ephemerals
        same = all(self._old.get(key) == value for key, value in status.items())
        after = min(self._waits, default=None)
        return Next(None if same else status, after)

    def _conditions(
        self, inits: Sequence[tuple[Object, Object]], mains: Sequence[tuple[Object, Object]], phase: str
    ) -> list[Object]:
        old = {found["type"]: found for found in self._old.get("conditions") or ()}
        made = [
            ("PodReadyToStartContainers", phase not in TERMINAL, "", ""),
            self._initialized(inits, phase),
            self._ready(mains, phase, old),
            self._containers_ready(mains, phase, "ContainersReady"),
            ("PodScheduled", True, "", ""),
        ]
        found = [self._condition(old.get(kind), kind, holds, reason, message) for kind, holds, reason, message in made]
        return [*found, *(kept for kind, kept in old.items() if kind not in _OURS)]

    def _condition(self, old: Object | None, kind: str, holds: bool, reason: str, message: str) -> Object:
        value = "True" if holds else "False"
        since = old["lastTransitionTime"] if old and old["status"] == value else rfc3339(self._now)
        found: Object = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
        if generation := self._pod["metadata"].get("generation"):
            found["observedGeneration"] = generation
        if reason:
            found["reason"] = reason
        if message:
            found["message"] = message
        return found

    def _initialized(self, inits: Sequence[tuple[Object, Object]], phase: str) -> tuple[str, bool, str, str]:
        if phase == "Succeeded":
            return ("Initialized", True, "PodCompleted", "")
        names = [spec["name"] for spec, status in inits if not self._are_initialized([(spec, status)])]
        if not names:
            return ("Initialized", True, "", "")
        message = f"containers with incomplete status: [{' '.join(names)}]"
        return ("Initialized", False, "ContainersNotInitialized", message)

    def _containers_ready(
        self, mains: Sequence[tuple[Object, Object]], phase: str, kind: str
    ) -> tuple[str, bool, str, str]:
        if phase == "Succeeded":
            return (kind, False, "PodCompleted", "")
        if phase == "Failed":
            return (kind, False, "PodFailed", "")
        names = [spec["name"] for spec, status in mains if not status["ready"]]
        if not names:
            return (kind, True, "", "")
        return (kind, False, "ContainersNotReady", f"containers with unready status: [{' '.join(names)}]")

    def _ready(
        self, mains: Sequence[tuple[Object, Object]], phase: str, old: Mapping[str, Object]
    ) -> tuple[str, bool, str, str]:
        found = self._containers_ready(mains, phase, "Ready")
        if not found[1]:
            return found
        problems = []
        for gate in self._spec.get("readinessGates") or ():
            kind = gate["conditionType"]
            if kind not in old:
                problems.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
            elif old[kind]["status"] != "True":
                problems.append(f'the status of pod readiness gate "{kind}" is not "True", but {old[kind]["status"]}')
        return ("Ready", False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else found

    @property
    def _full_name(self) -> str:
        metadata = self._pod["metadata"]
        return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"

    def _container_id(self, name: str, restarts: int) -> str:
        return f"containerd://{_digest(self._pod['metadata']['uid'], name, str(restarts))}"


def _started_after(spec: Object, behaviour: ContainerBehaviour) -> float:
    """Seconds after its start; without a startup probe at once."""
    if "startupProbe" not in spec:
        return 0.0
    return math.inf if behaviour.started_after is None else behaviour.started_after


def _patience(probe: Object) -> float:
    """Seconds in which a probe fails so often that it counts."""
    return float(probe.get("failureThreshold", 3) * probe.get("periodSeconds", 10))


def _new_status(spec: Object) -> Object:
    return {
        "name": spec["name"],
        "state": {"waiting": {"reason": "ContainerCreating"}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": spec.get("image", ""),
        "imageID": "",
        "started": False,
    }


def _waiting(status: Object, reason: str, message: str = "") -> Object:
    waiting = {"reason": reason, **({"message": message} if message else {})}
    return {**status, "state": {"waiting": waiting}, "ready": False, "started": False}


def _is_sidecar(spec: Object) -> bool:
    return spec.get("restartPolicy") == "Always"


def _is_over(status: Object) -> bool:
    return "terminated" in status["state"]


def _exit_code(status: Object) -> int | None:
    """None: it hasn't ended."""
    terminated = status["state"].get("terminated")
    code: int | None = terminated["exitCode"] if terminated else None
    return code


def _failed(status: Object) -> bool:
    return _exit_code(status) not in (None, 0)


def _ended(status: Object) -> float | None:
    terminated = status["state"].get("terminated")
    return seconds_of(terminated["finishedAt"]) if terminated else None


def _go_seconds(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
