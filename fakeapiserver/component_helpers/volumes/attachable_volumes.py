"""The volumes of a pod that have to be attached to its node (upstream: pkg/volume/csi, pkg/controller/
volume/attachdetach/util/util.go)."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.volumes.pod_volumes import claim_name, is_for_pod

_PREFIX: Final = "kubernetes.io/csi/"
_SEPARATOR: Final = "^"
_SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})


class Volume(Struct, frozen=True):
    """A volume that a driver attaches. `shared`: to several nodes at once."""

    driver: str
    handle: str
    persistent_volume: str
    shared: bool

    @property
    def unique_name(self) -> str:
        """The name under which nodes report the volume in their status."""
        return f"{_PREFIX}{self.driver}{_SEPARATOR}{self.handle}"


def volume_of(persistent_volume: Object) -> Volume | None:
    """Returns the volume, or None if no driver attaches it."""
    spec = persistent_volume["spec"]
    source = spec.get("csi")
    if source is None:
        return None
    modes: Sequence[str] = spec.get("accessModes") or ()
    shared = not modes or not _SHARED.isdisjoint(modes)
    return Volume(source["driver"], source["volumeHandle"], persistent_volume["metadata"]["name"], shared)


def split_name(unique_name: str) -> tuple[str, str] | None:
    """(driver, handle); None: it is no driver's."""
    driver, separator, handle = unique_name.removeprefix(_PREFIX).partition(_SEPARATOR)
    return (driver, handle) if separator and unique_name.startswith(_PREFIX) else None


class Objects(Protocol):
    """The objects of one resource."""

    def get_by_key(self, key: str) -> Object | None: ...


class AttachableVolumes(Struct, frozen=True):
    """Finds the attachable volumes of pods."""

    claims: Objects
    volumes: Objects
    drivers: Objects

    def of(self, pod: Object) -> Iterator[Volume]:
        """Yields the pod's volumes that are bound and whose drivers attach."""
        for row in pod["spec"].get("volumes") or ():
            volume = self._volume(pod, row)
            if volume is not None and self._is_attached(volume.driver):
                yield volume

    def _volume(self, pod: Object, row: Object) -> Volume | None:
        name = claim_name(pod, row)
        claim = self.claims.get_by_key(f"{pod['metadata']['namespace']}/{name}") if name else None
        if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
            return None
        if row.get("ephemeral") is not None and not is_for_pod(pod, claim):
            return None
        persistent_volume = self.volumes.get_by_key(claim["spec"].get("volumeName") or "")
        reference = None if persistent_volume is None else persistent_volume["spec"].get("claimRef")
        if persistent_volume is None or reference is None or reference.get("uid") != claim["metadata"]["uid"]:
            return None
        return volume_of(persistent_volume)

    def _is_attached(self, driver: str) -> bool:
        """Whether the driver's volumes need to be attached."""
        csi_driver = self.drivers.get_by_key(driver)
        return csi_driver is None or csi_driver["spec"].get("attachRequired", True) is not False
