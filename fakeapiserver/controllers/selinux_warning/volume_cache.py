"""The uses of volumes with SELinux labels (upstream: pkg/controller/volume/selinuxwarning/{cache,translator})."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.controller_runtime.reconcile import Request

RECURSIVE: Final = "Recursive"
_PARTS: Final = ("user", "role", "type", "level")
_LABEL: Final = "SELinuxLabel"
_POLICY: Final = "SELinuxChangePolicy"


class Use(NamedTuple):
    """The use of a volume by a pod. label: as `label_of` returns it."""

    label: str
    change_policy: str


class Conflict(NamedTuple):
    """A conflict, as it is reported about one pod to the other."""

    property_name: str
    pod: Request
    value: str
    other_pod: Request
    other_value: str

    @property
    def reason(self) -> str:
        return f"{self.property_name}Conflict"

    @property
    def message(self) -> str:
        """Pods of other namespaces aren't named. Upstream leaves out a blank there."""
        name, end = self.property_name, "If both pods land on the same node, only one of them may access the volume."
        if self.pod.namespace == self.other_pod.namespace:
            return (
                f'{name} "{self.value}" conflicts with pod {self.other_pod.name} that uses the same volume as this pod '
                f'with {name} "{self.other_value}". {end}'
            )
        return (
            f'{name}"{self.value}" conflicts with another pod that uses the same volume as this pod '
            f"with a different {name}. {end}"
        )


def label_of(options: Mapping[str, Any]) -> str:
    """Returns `user:role:type:level` of SELinuxOptions, or "" if they are empty.

    Missing parts stay empty: nodes have unknown defaults.
    """
    parts = [options.get(part) or "" for part in _PARTS]
    return ":".join(parts) if any(parts) else ""


def differ(label: str, other: str) -> bool:
    """No node's defaults could make them one: a level is never filled in."""
    left, right = _parsed(label), _parsed(other)
    return left[3] != right[3] or any(one and two and one != two for one, two in zip(left[:3], right[:3], strict=True))


def _parsed(label: str) -> list[str]:
    parts = label.split(":", 3)
    return [*parts, *[""] * (4 - len(parts))]


class _Volume(Struct):
    """csi_driver: "" for one of another kind. conflicts: both directions of each."""

    csi_driver: str
    uses: dict[Request, Use] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)

    def forget_conflicts(self, pod: Request) -> None:
        self.conflicts = [conflict for conflict in self.conflicts if pod not in (conflict.pod, conflict.other_pod)]


class VolumeCache:
    """All volumes of all pods, by their unique names."""

    def __init__(self) -> None:
        self._volumes: dict[str, _Volume] = {}
        self._of_pods: dict[Request, set[str]] = {}

    def add_volume(self, name: str, pod: Request, use: Use, csi_driver: str) -> Collection[Conflict]:
        """The conflicts that this makes; none where the pod was known to use it so."""
        volume = self._volumes.setdefault(name, _Volume(csi_driver))
        self._of_pods.setdefault(pod, set()).add(name)
        if volume.uses.get(pod) == use:
            return ()
        volume.uses[pod] = use
        volume.forget_conflicts(pod)
        conflicts = [conflict for other in volume.uses for conflict in _conflicts(pod, use, other, volume.uses[other])]
        volume.conflicts += conflicts
        return conflicts

    def delete_pod(self, pod: Request) -> None:
        """Forgets the uses of a pod."""
        for name in self._of_pods.pop(pod, ()):
            volume = self._volumes[name]
            volume.forget_conflicts(pod)
            del volume.uses[pod]
            if not volume.uses:
                del self._volumes[name]

    def pods_of_driver(self, csi_driver: str) -> Collection[Request]:
        """Returns the pods that use volumes of the driver."""
        return {pod for volume in self._volumes.values() if volume.csi_driver == csi_driver for pod in volume.uses}

    @property
    def conflicts(self) -> Collection[Conflict]:
        """Returns the current conflicts, in both directions."""
        return {conflict for volume in self._volumes.values() for conflict in volume.conflicts}


def _conflicts(pod: Request, use: Use, other: Request, other_use: Use) -> Iterator[Conflict]:
    if use.change_policy != other_use.change_policy:
        yield Conflict(_POLICY, pod, use.change_policy, other, other_use.change_policy)
        yield Conflict(_POLICY, other, other_use.change_policy, pod, use.change_policy)
    if differ(use.label, other_use.label):
        yield Conflict(_LABEL, pod, use.label, other, other_use.label)
        yield Conflict(_LABEL, other, other_use.label, pod, use.label)
