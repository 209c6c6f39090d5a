"""Functions on a container's status, and the statuses that several steps of a pod's life create. Pure.

`spec` is a container of a pod's spec, `status` its entry in containerStatuses or in one of the other two lists.

Upstream: pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses).
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.nodes.pod_lifecycle import restarts
from fakeapiserver.nodes.pod_lifecycle.termination import KILLED

# Containers as (spec, status).
Containers = Sequence[tuple[Object, Object]]
_RESTARTING: Final = "RestartingAllContainers"
_REMOVED: Final = "The container is removed because RestartAllContainers in place"
_LOST: Final = "The container could not be located when the pod was terminated"


def removed(status: Object) -> Object:
    """The status of a container that was removed, because all containers of its pod start again."""
    if "waiting" in status["state"] and not status.get("lastState"):
        return status
    return {
        **waiting(status, _RESTARTING, _REMOVED),
        "lastState": {"terminated": {"exitCode": KILLED, "reason": _RESTARTING, "message": _REMOVED}},
        "restartCount": status["restartCount"] + 1,
    }


def is_removed(status: Object) -> bool:
    """Reports whether `removed` made this status."""
    return bool((status["state"].get("waiting") or {}).get("reason") == _RESTARTING)


def may_restart_all(spec: Object) -> bool:
    """Reports whether a rule of the container restarts all containers of its pod."""
    return any(rule["action"] == restarts.RESTART_ALL for rule in spec.get("restartPolicyRules") or ())


def lost(status: Object) -> Object:
    """The status of a container that never started in a pod that has ended."""
    terminated = {"exitCode": KILLED, "reason": "ContainerStatusUnknown", "message": _LOST}
    return {**status, "state": {"terminated": terminated}, "ready": False}


def last_exit_code(status: Object) -> int | None:
    """Returns the exit code of the previous run, or None."""
    last = (status.get("lastState") or {}).get("terminated")
    code: int | None = last["exitCode"] if last else None
    return code


def new_status(spec: Object) -> Object:
    """Returns the first status of a container."""
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


def waiting(status: Object, reason: str, message: str = "") -> Object:
    """The status of the container while it waits."""
    waiting_state = {"reason": reason, **({"message": message} if message else {})}
    return {**status, "state": {"waiting": waiting_state}, "ready": False, "started": False}


def is_sidecar(spec: Object) -> bool:
    """Reports whether an init container goes on running beside the others."""
    return spec.get("restartPolicy") == "Always"


def exit_code(status: Object) -> int | None:
    """The exit code of a container that has ended, else None."""
    terminated = status["state"].get("terminated")
    code: int | None = terminated["exitCode"] if terminated else None
    return code


def are_initialized(inits: Containers) -> bool:
    """Reports whether the init containers let the others start: they have succeeded, or started if they are sidecars."""
    return all(bool(status.get("started")) if is_sidecar(spec) else exit_code(status) == 0 for spec, status in inits)


def has_failed(status: Object) -> bool:
    """Reports whether the container has ended with another exit code than 0."""
    return exit_code(status) not in (None, 0)


def ended_at(status: Object) -> float | None:
    """When the container ended, in seconds since the epoch; None if it hasn't."""
    terminated = status["state"].get("terminated")
    return seconds_of(terminated.get("finishedAt")) if terminated else None


def digest(*parts: str) -> str:
    """A made-up, but stable identifier: 64 hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
