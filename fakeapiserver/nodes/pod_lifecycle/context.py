"""The node's knowledge about a pod, and a pod in one look at it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.nodes.behaviour import ContainerBehaviour
from fakeapiserver.nodes.pod_lifecycle import resizing, restarts
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    digest,
    is_sidecar,
)
from fakeapiserver.nodes.pod_lifecycle.events import WARNING, PodEvent
from fakeapiserver.nodes.pod_lifecycle.termination import Ending, Stop

BehaviourOf = Callable[[str, bool], ContainerBehaviour]
# The reason and message why the node has no room for what the pod requests now; None if it has.
RoomFor = Callable[[Object], tuple[str, str] | None]
KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
GRACE: Final = 30.0


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


class StatusUpdate(Struct, frozen=True):
    """`status`: the new status; None if it stays as it is. `after`: seconds until something changes by itself. `gone`: the pod
    may be removed. `events`: the events since the last look."""

    status: Object | None
    after: float | None = None
    gone: bool = False
    events: tuple[PodEvent, ...] = ()


class PodContext:
    """A pod in one look at it: what is known of it, and what its next status is made of."""

    def __init__(self, pod: Object, place: PodLocation, behaviour_of: BehaviourOf, now: float, state: PodState) -> None:
        self.pod = pod
        self.spec: Mapping[str, Any] = pod["spec"]
        self.old: Mapping[str, Any] = pod.get("status") or {}
        self.place = place
        self.behaviour_of = behaviour_of
        self.now = now
        self.state = state
        self.waits: list[float] = []
        self.timed_events: dict[TimedEvent, None] = {}  # a set in the order of reporting
        self.known = {
            status["name"]: status
            for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for status in self.old.get(kind) or ()
        }
        self.kinds = {spec["name"]: kind for kind in KINDS for spec in self.spec.get(kind) or ()}
        self.ephemerals: list[Object] = []
        self.policy: str = self.spec.get("restartPolicy", "Always")
        self.grace = float(self.spec.get("terminationGracePeriodSeconds", GRACE))
        self.resets = False
        self.resizing: dict[str, tuple[str, str]] = {}
        self.resizes = False

    def is_init(self, spec: Object) -> bool:
        """Reports whether it is an init container that has to end before others start."""
        return self.kinds[spec["name"]] == "initContainers" and not is_sidecar(spec)

    def happens(self, at: float, event: PodEvent) -> None:
        self.timed_events[TimedEvent(at, event)] = None

    def path(self, spec: Object) -> str:
        return f"spec.{self.kinds[spec['name']]}{{{spec['name']}}}"

    def restarts(self, spec: Object, exit_code: int | None) -> bool:
        """Reports whether the container restarts after it has ended with this exit code."""
        is_init = self.is_init(spec)
        return exit_code is not None and restarts.restarts(spec, self.policy, exit_code, is_init=is_init)

    def span(self, status: Object) -> Span:
        """The exact times of the container's present run, as far as this kubelet knows them."""
        started = seconds_of((status["state"].get("running") or {}).get("startedAt", "")) or self.now
        key = (status["name"], status["restartCount"])
        span = self.state.spans.get(key)
        if span is None or not 0 <= span.started - started < 1:
            span = self.state.spans[key] = Span(started)
        return span

    def started(self, status: Object) -> float:
        return self.span(status).started

    def ended(
        self, old: Object, exit_code: int, message: str = "", at: float | None = None, reason: str = ""
    ) -> Object:
        """The status of a container that has ended. reason: of an exit code other than 0; "": Error."""
        since = old["state"].get("running", {}).get("startedAt") or rfc3339(self.now)
        self.span(old).ended = self.now
        terminated: Object = {
            "exitCode": exit_code,
            "reason": "Completed" if exit_code == 0 else reason or "Error",
            "startedAt": since,
            "finishedAt": rfc3339(self.now if at is None else at),
            "containerID": old.get("containerID", ""),
        }
        if message:
            terminated["message"] = message
        return {**old, "state": {"terminated": terminated}, "ready": False, "started": False}

    def hook_fails(self, spec: Object, end: Ending) -> None:
        if end.hook_failed is not None:
            self.happens(end.hook_failed, PodEvent(WARNING, "FailedPreStopHook", "PreStopHook failed", self.path(spec)))

    def container_id(self, name: str, restarts_: int) -> str:
        return f"containerd://{digest(self.pod['metadata']['uid'], name, str(restarts_))}"

    def with_resources(self, status: Object, *, actual: bool) -> Object:
        """The container's status with the resources allocated to it. `actual`: the container has them already."""
        given = self.state.allocated.get(status["name"])
        if given is None:
            return status
        resized = {**status, "resources": given} if actual else dict(status)
        resized.pop("allocatedResources", None)
        return {**resized, "allocatedResources": given["requests"]} if given.get("requests") else resized
