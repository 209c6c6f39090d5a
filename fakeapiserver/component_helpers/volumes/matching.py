"""Matching of volumes and claims (upstream: k8s.io/component-helpers/storage/volume, pkg/controller/volume/persistentvolume/index.go)."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from fakeapiserver.apimachinery.labels import from_label_selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import amount
from fakeapiserver.component_helpers.objects import is_terminating, labels_of
from fakeapiserver.controller_runtime.reconcile import Request

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def annotations_of(obj: Object) -> dict[str, str]:
    """Not the caller's to change."""
    annotations: dict[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


def has_class(claim: Object) -> bool:
    """Reports whether the claim names a storage class, including ""."""
    return _BETA_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def class_of(obj: Object) -> str:
    """A claim's or a volume's storage class; "" for none."""
    return annotations_of(obj).get(_BETA_CLASS, obj["spec"].get("storageClassName") or "")


def default_class(classes: Iterable[Object]) -> Object | None:
    """Returns the newest class that is marked as the default."""
    marked = sorted(
        (
            storage_class
            for storage_class in classes
            if any(annotations_of(storage_class).get(name) == "true" for name in _DEFAULT_CLASS)
        ),
        key=lambda storage_class: str(storage_class["metadata"]["name"]),
    )
    return max(
        marked, key=lambda storage_class: str(storage_class["metadata"].get("creationTimestamp") or ""), default=None
    )


def is_bound_to(volume: Object, claim: Object) -> bool:
    """The volume names the claim; perhaps not by its uid yet."""
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    return (
        reference is not None
        and reference.get("name") == metadata["name"]
        and reference.get("namespace") == metadata["namespace"]
        and reference.get("uid", "") in ("", metadata["uid"])
    )


def claim_of(volume: Object) -> Request:
    """The claim that a volume names."""
    reference = volume["spec"]["claimRef"]
    return Request(reference.get("namespace", ""), reference.get("name", ""))


def storage_of(amounts: Mapping[str, Any] | None) -> Fraction:
    """In bytes."""
    return amount((amounts or {}).get("storage", "0"))


def requested_storage(claim: Object) -> Fraction:
    return storage_of((claim["spec"].get("resources") or {}).get("requests"))


def differ_in_mode(claim: Object, volume: Object) -> bool:
    """Whether one is a file system and the other a block device."""
    modes = [obj["spec"].get("volumeMode") or "Filesystem" for obj in (claim, volume)]
    return bool(modes[0] != modes[1])


def has_access_modes(claim: Object, volume: Object) -> bool:
    """All that the claim wants."""
    return {*(claim["spec"].get("accessModes") or ())} <= {*(volume["spec"].get("accessModes") or ())}


def why_not(volume: Object, claim: Object) -> str:
    """Why a claim can't have the volume that it names; "" if it can."""
    if is_terminating(volume):
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if storage_of(volume["spec"].get("capacity")) < requested_storage(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if differ_in_mode(claim, volume):
        return "incompatible volumeMode"
    return "" if has_access_modes(claim, volume) else "incompatible accessMode"


def _attributes_class(obj: Object) -> str:
    class_name: str = obj["spec"].get("volumeAttributesClassName") or ""
    return class_name


def best_match(claim: Object, volumes: Iterable[Object], *, delay_binding: bool) -> Object | None:
    """The volume that names the claim, else the smallest that suits, of those with the fewest access modes that have what it
    wants. `delay_binding`: only the first."""
    by_modes: dict[tuple[str, ...], list[Object]] = {}
    for volume in volumes:
        if has_access_modes(claim, volume):
            by_modes.setdefault(tuple(sorted(set(volume["spec"].get("accessModes") or ()))), []).append(volume)
    for modes in sorted(by_modes, key=lambda modes: (len(modes), modes)):
        best = matching(claim, by_modes[modes], delay_binding=delay_binding)
        if best is not None:
            return best
    return None


def matching(
    claim: Object,
    volumes: Iterable[Object],
    *,
    delay_binding: bool = False,
    on_node: Callable[[Object], bool] | None = None,
) -> Object | None:
    """The volume that names the claim, else the smallest that suits. `delay_binding`: only the first. `on_node`: whether a volume
    can be used where the scheduler asks about; it looks at access modes too, which the binder has sorted volumes by."""
    wanted, wanted_class = requested_storage(claim), class_of(claim)
    selector = claim["spec"].get("selector")
    selects = from_label_selector(selector).matches if selector is not None else None
    smallest: tuple[Fraction, Object] | None = None
    for volume in volumes:
        own = is_bound_to(volume, claim)
        if volume["spec"].get("claimRef") is not None and not own:
            continue
        size = storage_of(volume["spec"].get("capacity"))
        if (
            size < wanted
            or differ_in_mode(claim, volume)
            or _attributes_class(claim) != _attributes_class(volume)
            or is_terminating(volume)
        ):
            continue
        if own:
            return volume if on_node is None or on_node(volume) else None
        if (
            not delay_binding
            and volume.get("status", {}).get("phase") == "Available"
            and (selects is None or selects(labels_of(volume)))
            and class_of(volume) == wanted_class
            and (smallest is None or size < smallest[0])
            and (on_node is None or (has_access_modes(claim, volume) and on_node(volume)))
        ):
            smallest = size, volume
    return None if smallest is None else smallest[1]
