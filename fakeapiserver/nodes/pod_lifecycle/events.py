"""The events of a kubelet about a pod whose status changes. Pure.

Upstream: pkg/kubelet/events/event.go, pkg/kubelet/kuberuntime/{kuberuntime_container,kuberuntime_manager}.go, pkg/kubelet/images/
image_manager.go, pkg/kubelet/prober/prober.go.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
_KINDS: Final = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)


class PodEvent(NamedTuple):
    """An event; `field_path`: of the container it is about, "" for the pod."""

    type: str
    reason: str
    message: str
    field_path: str = ""


def changes(pod: Object, status: Object) -> Iterator[PodEvent]:
    """Yields the events for the change of the pod's status to `status`."""
    old = pod.get("status") or {}
    for kind, statuses in _KINDS:
        known = {container_status["name"]: container_status for container_status in old.get(statuses) or ()}
        specs = {spec["name"]: spec for spec in pod["spec"].get(kind) or ()}
        for container_status in status.get(statuses) or ():
            before = known.get(container_status["name"])
            if before is None or before["state"] != container_status["state"]:
                path = f"spec.{kind}{{{container_status['name']}}}"
                if "running" in container_status["state"]:
                    yield from begun(specs[container_status["name"]], path)
                yield from _waits(
                    pod, specs[container_status["name"]], container_status["state"].get("waiting") or {}, path
                )


def begun(spec: Object, path: str) -> Iterator[PodEvent]:
    """A container of such a spec has begun."""
    image = spec.get("image", "")
    if spec.get("imagePullPolicy") == "Always":
        yield PodEvent(NORMAL, "Pulling", f'Pulling image "{image}"', path)
        took = "0s (0s including waiting). Image size: 0 bytes."
        yield PodEvent(NORMAL, "Pulled", f'Successfully pulled image "{image}" in {took}', path)
    else:
        present = "already present on machine and can be accessed by the pod"
        yield PodEvent(NORMAL, "Pulled", f'Container image "{image}" {present}', path)
    yield PodEvent(NORMAL, "Created", "Container created", path)
    yield PodEvent(NORMAL, "Started", "Container started", path)


def _waits(pod: Object, spec: Object, waiting: Object, path: str) -> Iterator[PodEvent]:
    name, image, message = spec["name"], spec.get("image", ""), waiting.get("message", "")
    match waiting.get("reason", ""):
        case "ErrImagePull":
            yield PodEvent(NORMAL, "Pulling", f'Pulling image "{image}"', path)
            yield PodEvent(WARNING, "Failed", f'Failed to pull image "{image}": {message}', path)
            yield PodEvent(WARNING, "Failed", "Error: ErrImagePull", path)
        case "ImagePullBackOff":
            yield PodEvent(NORMAL, "BackOff", f'Back-off pulling image "{image}"', path)
            yield PodEvent(WARNING, "Failed", "Error: ImagePullBackOff", path)
        case "InvalidImageName":
            yield PodEvent(WARNING, "InspectFailed", message, path)
            yield PodEvent(WARNING, "Failed", "Error: InvalidImageName", path)
        case "ErrImageNeverPull":
            yield PodEvent(WARNING, "ErrImageNeverPull", message, path)
            yield PodEvent(WARNING, "Failed", "Error: ErrImageNeverPull", path)
        case "CrashLoopBackOff":
            text = f"Back-off restarting failed container {name} in pod {full_name(pod)}"
            yield PodEvent(WARNING, "BackOff", text, path)


def full_name(pod: Object) -> str:
    """Returns the pod's name in upstream's messages."""
    metadata = pod["metadata"]
    return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
