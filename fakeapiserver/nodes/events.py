"""What a kubelet tells of a pod whose status changes. Pure.

Upstream: pkg/kubelet/events/event.go, pkg/kubelet/kuberuntime/{kuberuntime_container,kuberuntime_manager}.go, pkg/kubelet/images/
image_manager.go, pkg/kubelet/prober/prober.go.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fakeapiserver.client.cache.indexer import Object

_NORMAL: Final = "Normal"
_WARNING: Final = "Warning"
_KILLED: Final = 137
_KINDS: Final = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)


class Told(NamedTuple):
    """An event; `field_path`: of the container it is about, "" for the pod."""

    type: str
    reason: str
    message: str
    field_path: str = ""


def changes(pod: Object, status: Object) -> Iterator[Told]:
    """What becomes of the pod, whose status so far is its own, is to be `status`."""
    old = pod.get("status") or {}
    for kind, statuses in _KINDS:
        known = {found["name"]: found for found in old.get(statuses) or ()}
        specs = {spec["name"]: spec for spec in pod["spec"].get(kind) or ()}
        for found in status.get(statuses) or ():
            before = known.get(found["name"])
            if before is None or before["state"] != found["state"]:
                path = f"spec.{kind}{{{found['name']}}}"
                for type_, reason, message in _container(pod, specs[found["name"]], before, found):
                    yield Told(type_, reason, message, path)
    if status.get("reason") == "DeadlineExceeded" and old.get("reason") != "DeadlineExceeded":
        yield Told(_NORMAL, "DeadlineExceeded", status["message"])


def _container(pod: Object, spec: Object, before: Object | None, found: Object) -> Iterator[tuple[str, str, str]]:
    name, image, state = spec["name"], spec.get("image", ""), found["state"]
    was = before["state"] if before is not None else {}
    deleted = pod["metadata"].get("deletionTimestamp")
    if "running" in was and "running" not in state and deleted:
        yield _NORMAL, "Killing", f"Stopping container {name}"
    elif "running" in was:
        yield from _probes(spec, found)
    if "running" in state:
        if spec.get("imagePullPolicy") == "Always":
            yield _NORMAL, "Pulling", f'Pulling image "{image}"'
            took = "0s (0s including waiting). Image size: 0 bytes."
            yield _NORMAL, "Pulled", f'Successfully pulled image "{image}" in {took}'
        else:
            present = "already present on machine and can be accessed by the pod"
            yield _NORMAL, "Pulled", f'Container image "{image}" {present}'
        yield _NORMAL, "Created", "Container created"
        yield _NORMAL, "Started", "Container started"
    waiting = state.get("waiting") or {}
    match waiting.get("reason", ""):
        case "ErrImagePull":
            yield _NORMAL, "Pulling", f'Pulling image "{image}"'
            yield _WARNING, "Failed", f'Failed to pull image "{image}": {waiting.get("message", "")}'
            yield _WARNING, "Failed", "Error: ErrImagePull"
        case "ImagePullBackOff":
            yield _NORMAL, "BackOff", f'Back-off pulling image "{image}"'
            yield _WARNING, "Failed", "Error: ImagePullBackOff"
        case "CrashLoopBackOff":
            yield _WARNING, "BackOff", f"Back-off restarting failed container {name} in pod {_full_name(pod)}"


def _probes(spec: Object, found: Object) -> Iterator[tuple[str, str, str]]:
    """A container that was killed though nobody wanted the pod to stop has failed a probe."""
    ended = found["state"].get("terminated") or (found.get("lastState") or {}).get("terminated") or {}
    if ended.get("exitCode") != _KILLED:
        return
    probe = "startup" if "startupProbe" in spec and "livenessProbe" not in spec else "liveness"
    if f"{probe}Probe" in spec:
        yield _WARNING, "Unhealthy", f"{probe.capitalize()} probe failed: "
        yield _NORMAL, "Killing", f"Container {spec['name']} failed {probe} probe, will be restarted"


def _full_name(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
