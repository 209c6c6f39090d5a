"""Whether a pod's volumes let it onto a node, and which volumes its claims get there.

Upstream: pkg/scheduler/framework/plugins (volumerestrictions, nodevolumelimits/csi.go, volumebinding/{volume_binding,binder}.go,
volumezone). Volumes of earlier days whose work is a CSI driver's now are taken as they are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.record import object_reference
from fakeapiserver.component_helpers.objects import is_terminating, key_of, labels_of
from fakeapiserver.component_helpers.scheduling import matches_term
from fakeapiserver.component_helpers.volumes.matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    annotations_of,
    class_of,
    is_bound_to,
    matching,
    requested_storage,
    storage_of,
)
from fakeapiserver.component_helpers.volumes.pod_volumes import claim_name, is_for_pod
from fakeapiserver.nodes.scheduler.node_info import NodeInfo, PodInfo

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_AFFINITY: Final = "node(s) didn't match PersistentVolume's node affinity"
_NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE: Final = "node(s) did not have enough free storage"
_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
# Label of earlier days -> that of today.
_TOPOLOGY: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


class Objects(Protocol):
    """The objects of one resource."""

    def get_by_key(self, key: str) -> Object | None: ...

    def list(self) -> Sequence[Object]: ...


class Assumed:
    """Objects as an informer has them, or as they will soon be: until it has a newer one."""

    def __init__(self, seen: Objects) -> None:
        self.seen = seen
        self._assumed: dict[str, Object] = {}

    def get_by_key(self, key: str) -> Object | None:
        seen, assumed = self.seen.get_by_key(key), self._assumed.get(key)
        if assumed is None or seen is None or version(seen) > version(assumed):
            self._assumed.pop(key, None)
            return seen
        return assumed

    def list(self) -> Sequence[Object]:
        if not self._assumed:
            return self.seen.list()
        return [self.get_by_key(key_of(obj)) or obj for obj in self.seen.list()]

    def assume(self, obj: Object) -> None:
        """Assumes an object's next state."""
        self._assumed[key_of(obj)] = obj

    def forget(self, key: str) -> None:
        """Drops an assumption."""
        self._assumed.pop(key, None)


def version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


class PodVolumes(Struct):
    """The volumes of a pod's claims on a node: existing ones (claim, volume), and claims to be provisioned."""

    static: Sequence[tuple[Object, Object]] = ()
    dynamic: Sequence[Object] = ()


class PodClaims(Struct):
    """A pod's volumes, the same for all nodes. `problem`: why none will do; "" where some may.

    candidates: the volumes that claims which wait for their consumer may get, by storage class.
    topologies: (label, its values) of volumes. once_in_use: a claim for one pod only that a pod has already.
    found: what each node has for it.
    """

    problem: str = ""
    bound: list[Object] = field(default_factory=list)
    delayed: list[Object] = field(default_factory=list)
    candidates: dict[str, Sequence[Object]] = field(default_factory=dict)
    topologies: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    once_in_use: bool = False
    found: dict[str, PodVolumes] = field(default_factory=dict)


class Storage(Struct, frozen=True):
    """The caches of storage objects."""

    claims: Assumed
    volumes: Assumed
    classes: Objects
    csi_nodes: Objects
    csi_drivers: Objects
    capacities: Objects
    attachments_of: Callable[[str], Iterable[Object]]

    # ------------------------------------------------------------------------ before all nodes

    def claims_of(self, info: PodInfo, nodes: Iterable[NodeInfo]) -> PodClaims:
        pod, claims = info.pod, PodClaims()
        rows = [row for row in pod["spec"].get("volumes") or () if claim_name(pod, row)]
        if not rows:
            return claims
        claims.problem = (
            self._restrictions(info, rows, nodes, claims)
            or self._bindings(info, rows, claims)
            or self._topologies(info, rows, claims)
        )
        return claims

    def _claim(self, info: PodInfo, row: Object) -> Object | None:
        return self.claims.get_by_key(f"{info.namespace}/{claim_name(info.pod, row)}")

    def _restrictions(self, info: PodInfo, rows: Sequence[Object], nodes: Iterable[NodeInfo], claims: PodClaims) -> str:
        once = set()
        for row in rows:
            if row.get("ephemeral") is not None:
                continue
            claim = self._claim(info, row)
            if claim is None:
                return _not_found(claim_name(info.pod, row))
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                once.add(claim["metadata"]["name"])
        claims.once_in_use = bool(once) and any(
            other.namespace == info.namespace and not once.isdisjoint(other.claims)
            for node in nodes
            for other in node.pods.values()
        )
        return ""

    def _bindings(self, info: PodInfo, rows: Sequence[Object], pod_claims: PodClaims) -> str:
        claims = []
        for row in rows:
            name, claim = claim_name(info.pod, row), self._claim(info, row)
            problem = _unusable(info.pod, row, name, claim)
            if problem or claim is None:
                return problem
            claims.append(claim)
        immediate = False
        for claim in claims:
            if is_fully_bound(claim):
                pod_claims.bound.append(claim)
            elif self._is_delayed(claim) and not claim["spec"].get("volumeName"):
                pod_claims.delayed.append(claim)
            else:
                immediate = True
        if immediate:
            return "pod has unbound immediate PersistentVolumeClaims"
        pod_claims.delayed.sort(key=requested_storage)
        for name in {class_of(claim) for claim in pod_claims.delayed}:
            pod_claims.candidates[name] = [volume for volume in self.volumes.list() if class_of(volume) == name]
        return ""

    def _is_delayed(self, claim: Object) -> bool:
        storage_class = self.classes.get_by_key(class_of(claim))
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _topologies(self, info: PodInfo, rows: Sequence[Object], claims: PodClaims) -> str:
        for row in rows:
            claim = None if row.get("ephemeral") is not None else self._claim(info, row)
            if claim is None or not claim["spec"].get("volumeName"):
                continue
            volume = self.volumes.get_by_key(claim["spec"]["volumeName"])
            if volume is None:
                return f'persistentvolume "{claim["spec"]["volumeName"]}" not found'
            for key, value in labels_of(volume).items():
                if key in _TOPOLOGY and all(value.split("__")):
                    claims.topologies.append((key, frozenset(value.split("__"))))
        return ""

    # --------------------------------------------------------------------------- for each node

    def restriction(self, info: PodInfo, claims: PodClaims, node: NodeInfo) -> str:
        for row in info.pod["spec"].get("volumes") or ():
            rule = _disk_rule(row)
            if rule is not None and any(
                rule(row, theirs) for other in node.pods.values() for theirs in other.pod["spec"].get("volumes") or ()
            ):
                return "node(s) had no available disk"
        if claims.once_in_use:
            return (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
                "another pod"
            )
        return ""

    def limit(self, info: PodInfo, node: NodeInfo) -> str:
        """Returns why the node's drivers can't attach the pod's volumes, or ""."""
        csi_node = self.csi_nodes.get_by_key(node.name)
        drivers = () if csi_node is None else csi_node["spec"].get("drivers") or ()
        limits = {row["name"]: (row.get("allocatable") or {}).get("count") for row in drivers}
        if not any(count is not None for count in limits.values()):
            return ""
        wanted = self._csi_volumes(info)
        theirs: set[tuple[str, str]] = set()
        for other in node.pods.values():
            theirs |= self._csi_volumes(other)
        for attachment in self.attachments_of(node.name):
            name = (attachment["spec"].get("source") or {}).get("persistentVolumeName")
            volume = self.volumes.get_by_key(name) if name else None
            if volume is not None and volume["spec"].get("csi") is not None:
                theirs.add((attachment["spec"]["attacher"], volume["spec"]["csi"]["volumeHandle"]))
        added = wanted - theirs
        for driver in {name for name, _ in added}:
            most = limits.get(driver)
            if most is not None and sum(name == driver for name, _ in added | theirs) > most:
                return "node(s) exceed max volume count"
        return ""

    def _csi_volumes(self, info: PodInfo) -> set[tuple[str, str]]:
        """Returns (driver, handle) of a pod's volumes; missing volumes get a substitute for the handle."""
        csi_volumes = set()
        for row in info.pod["spec"].get("volumes") or () if info.has_claims else ():
            claim = self._claim(info, row) if claim_name(info.pod, row) else None
            if claim is None:
                continue
            volume = self.volumes.get_by_key(claim["spec"].get("volumeName") or "")
            if volume is None:
                storage_class = self.classes.get_by_key(class_of(claim))
                if storage_class is not None:
                    csi_volumes.add((storage_class["provisioner"], key_of(claim)))
            elif (source := volume["spec"].get("csi")) is not None:
                csi_volumes.add((source["driver"], source["volumeHandle"]))
        return csi_volumes

    def binding(self, claims: PodClaims, node: NodeInfo) -> Sequence[str]:
        """Why the claims can't be had on the node; nothing if they can, then `claims.found` says which volumes."""
        reasons, gone = [], False
        for claim in claims.bound:
            volume = self.volumes.get_by_key(claim["spec"]["volumeName"])
            if volume is None:
                gone = True
                break
            if not matches_affinity(volume, node.node):
                reasons.append(_AFFINITY)
                break
        pod_volumes, problem = self._find(claims, node) if claims.delayed else (PodVolumes(), "")
        reasons += [problem] if problem else []
        reasons += [_GONE] if gone else []
        if not reasons:
            claims.found[node.name] = pod_volumes
        return reasons

    def _find(self, claims: PodClaims, node: NodeInfo) -> tuple[PodVolumes, str]:
        static: list[tuple[Object, Object]] = []
        to_provision: list[Object] = []
        to_match: list[Object] = []
        for claim in claims.delayed:
            chosen = annotations_of(claim).get(SELECTED_NODE)
            if chosen is not None and chosen != node.name:
                return PodVolumes(), _NO_VOLUME
            (to_match if chosen is None else to_provision).append(claim)
        taken: set[str] = set()
        for claim in to_match:
            free = [volume for volume in claims.candidates[class_of(claim)] if volume["metadata"]["name"] not in taken]
            volume = matching(claim, free, on_node=lambda volume: matches_affinity(volume, node.node))
            if volume is None:
                to_provision.append(claim)
            else:
                taken.add(volume["metadata"]["name"])
                static.append((claim, volume))
        for claim in to_provision:
            problem = self._not_provisioned(claim, node)
            if problem:
                return PodVolumes(), problem
        return PodVolumes(static, to_provision), ""

    def _not_provisioned(self, claim: Object, node: NodeInfo) -> str:
        storage_class = self.classes.get_by_key(class_of(claim))
        if storage_class is None or storage_class["provisioner"] == NO_PROVISIONER:
            return _NO_VOLUME
        terms = storage_class.get("allowedTopologies") or ()
        if terms and not any(_in_topology(term, node.labels) for term in terms):
            return _NO_VOLUME
        driver = self.csi_drivers.get_by_key(storage_class["provisioner"])
        if driver is None or not driver["spec"].get("storageCapacity"):
            return ""
        wanted, name = requested_storage(claim), storage_class["metadata"]["name"]
        enough = any(
            row["storageClassName"] == name
            and storage_of({"storage": row.get("maximumVolumeSize") or row.get("capacity") or "-1"}) >= wanted
            and row.get("nodeTopology") is not None
            and labels.from_label_selector(row["nodeTopology"]).matches(node.labels)
            for row in self.capacities.list()
        )
        return "" if enough else _NO_SPACE

    def zone(self, claims: PodClaims, node: NodeInfo) -> str:
        if not claims.topologies or not any(key in node.labels for key in _TOPOLOGY):
            return ""
        for key, values in claims.topologies:
            if node.labels.get(key, node.labels.get(_TOPOLOGY[key])) not in values:
                return "node(s) had no available volume zone"
        return ""

    # ------------------------------------------------------------------------ when it is decided

    def assume(self, pod_volumes: PodVolumes, node: str) -> tuple[Sequence[Object], Sequence[Object]]:
        """(volumes, claims) as they are to be written."""
        volumes = [_bound(volume, claim) for claim, volume in pod_volumes.static]
        claims = [
            _annotated(claim, SELECTED_NODE, node)
            for claim in pod_volumes.dynamic
            if annotations_of(claim).get(SELECTED_NODE) != node
        ]
        for volume in volumes:
            self.volumes.assume(volume)
        for claim in claims:
            self.claims.assume(claim)
        return volumes, claims

    def revert(self, volumes: Iterable[Object], claims: Iterable[Object]) -> None:
        """Drops the assumptions about these objects."""
        for volume in volumes:
            self.volumes.forget(key_of(volume))
        for claim in claims:
            self.claims.forget(key_of(claim))


def is_disk(row: Object) -> bool:
    """Reports whether a pod's volume is a disk that not all pods of a node can have at once."""
    return _disk_rule(row) is not None


def _disk_rule(row: Object) -> "Callable[[Object, Object], bool] | None":
    return next((rule for name, rule in _DISKS.items() if row.get(name) is not None), None)


def is_fully_bound(claim: Object) -> bool:
    """By the controller whose work that is."""
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations_of(claim)


def matches_affinity(volume: Object, node: Object) -> bool:
    """The node is one that the volume can be used on."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    # by labels only
    nameless = {"metadata": {"name": "", "labels": labels_of(node)}}
    return any(matches_term(term, nameless) for term in required.get("nodeSelectorTerms") or ())


def _not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def _unusable(pod: Object, row: Object, name: str, claim: Object | None) -> str:
    ephemeral = row.get("ephemeral") is not None
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return _not_found(name)
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if is_terminating(claim):
        return f'persistentvolumeclaim "{name}" is being deleted'
    if ephemeral and not is_for_pod(pod, claim):
        return f"PVC {key_of(claim)} was not created for pod {key_of(pod)} (pod is not owner)"
    return ""


def _in_topology(term: Mapping[str, Any], node_labels: Mapping[str, str]) -> bool:
    rows = term.get("matchLabelExpressions") or ()
    return bool(rows) and all(node_labels.get(row["key"]) in row["values"] for row in rows)


def _bound(volume: Object, claim: Object) -> Object:
    """The volume, reserved for the claim."""
    if not is_bound_to(volume, claim):
        volume = _annotated(volume, BOUND_BY_CONTROLLER, "yes")
    return {**volume, "spec": {**volume["spec"], "claimRef": object_reference(claim)}}


def _annotated(obj: Object, name: str, value: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations_of(obj), name: value}}}


def _same_disk(kind: str, *members: str, shared_for_reading: bool = True) -> Callable[[Object, Object], bool]:
    """Whether two pods can't have it together, by what names the disk."""

    def conflict(ours: Object, theirs: Object) -> bool:
        left, right = ours.get(kind), theirs.get(kind)
        if left is None or right is None or any(left.get(member) != right.get(member) for member in members):
            return False
        return not (shared_for_reading and left.get("readOnly") and right.get("readOnly"))

    return conflict


def _same_image(ours: Object, theirs: Object) -> bool:
    left, right = ours.get("rbd") or {}, theirs.get("rbd") or {}
    if set(left.get("monitors") or ()).isdisjoint(right.get("monitors") or ()):
        return False
    return _same_disk("rbd", "pool", "image")(ours, theirs)


_DISKS: Final[Mapping[str, Callable[[Object, Object], bool]]] = {
    "gcePersistentDisk": _same_disk("gcePersistentDisk", "pdName"),
    "awsElasticBlockStore": _same_disk("awsElasticBlockStore", "volumeID", shared_for_reading=False),
    "iscsi": _same_disk("iscsi", "iqn"),
    "rbd": _same_image,
}
