"""Gives every node its range of pod addresses, with --allocate-node-cidrs (upstream: pkg/controller/nodeipam, ipam/range_allocator.go)."""

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, node_reference
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_WORKERS: Final = 30
_MASKS: Final = {4: 24, 6: 64}
# So many ranges at most, as upstream's bitmap has.
_MOST_BITS: Final = 16


class CIDRSet:
    """The ranges of one size in a cluster's range. ValueError for sizes that don't fit."""

    def __init__(self, cluster: Network, mask: int) -> None:
        if mask < cluster.prefixlen:
            raise ValueError(f"the mask of a node's range, /{mask}, is larger than the cluster's {cluster}")
        if mask - cluster.prefixlen > _MOST_BITS:
            raise ValueError(
                f"New CIDR set failed; the node CIDR size is too big: {cluster} has more than 65,536 ranges of /{mask}"
            )
        self.cluster = cluster
        self._mask = mask
        self._taken: set[Network] = set()
        self._next = self._around()

    def _around(self) -> Iterator[Network]:
        """Again and again, so that what was given back rests for a while."""
        while True:
            yield from self.cluster.subnets(new_prefix=self._mask)

    def allocate_next(self) -> Network | None:
        """Returns the next free range, or None if all are taken."""
        for _ in range(2 ** (self._mask - self.cluster.prefixlen)):
            network = next(self._next)
            if network not in self._taken:
                self._taken.add(network)
                return network
        return None

    def occupy(self, wanted: Network) -> None:
        """Every range that overlaps it is taken. ValueError: it is outside."""
        if wanted.version != self.cluster.version or not wanted.overlaps(self.cluster):
            raise ValueError(f"cidr {wanted} is out the range of cluster cidr {self.cluster}")
        self._taken.update(self._ranges_of(wanted))

    def release(self, wanted: Network) -> None:
        """Frees ranges."""
        if wanted.version == self.cluster.version and wanted.overlaps(self.cluster):
            self._taken.difference_update(self._ranges_of(wanted))

    def _ranges_of(self, wanted: Network) -> Iterator[Network]:
        inner = wanted if wanted.prefixlen >= self.cluster.prefixlen else self.cluster
        if inner.prefixlen >= self._mask:
            yield inner.supernet(new_prefix=self._mask)
        else:
            yield from inner.subnets(new_prefix=self._mask)


class NodeIPAM:
    """Requests are nodes."""

    def __init__(self, context: ControllerContext, sets: Sequence[CIDRSet]) -> None:
        self._nodes = context.client.resource(NODES)
        self._recorder = context.recorder("cidrAllocator")
        self._sets = sets
        self.nodes = context.informer(NODES)

    def changed(self, event: Event, queue: Queue) -> None:
        """A node that is gone gives its ranges back."""
        node = object_of(event)
        if isinstance(event, DeleteEvent):
            for cidr_set, text in zip(self._sets, node["spec"].get("podCIDRs") or (), strict=False):
                cidr_set.release(ipaddress.ip_network(text, strict=False))
            return
        if ranges := node["spec"].get("podCIDRs"):
            # at once, and before any other node is given one
            for cidr_set, text in zip(self._sets, ranges, strict=False):
                cidr_set.occupy(ipaddress.ip_network(text, strict=False))
            return
        queue.add(Request("", node["metadata"]["name"]))

    async def reconcile(self, request: Request) -> None:
        node = self.nodes.indexer.get_by_key(request.name)
        if node is None or node["spec"].get("podCIDRs"):
            return
        ranges: list[Network] = []
        for number, cidr_set in enumerate(self._sets):
            allocated = cidr_set.allocate_next()
            if allocated is None:
                self._give_back(ranges)
                self._tell(node, "CIDRNotAvailable")
                raise ValueError(
                    f"failed to allocate cidr from cluster cidr at idx:{number}: CIDR allocation failed; there are no remaining "
                    "CIDRs left to allocate in the accepted range"
                )
            ranges.append(allocated)
        shown = [str(allocated) for allocated in ranges]
        patch = {"spec": {"podCIDR": shown[0], "podCIDRs": shown}}
        try:
            await self._nodes.patch(request.name, patch, patch_type=STRATEGIC_MERGE_PATCH)
        except StatusError as error:
            self._give_back(ranges)
            if is_not_found(error):
                return
            self._tell(node, "CIDRAssignmentFailed")
            raise

    def _give_back(self, ranges: Sequence[Network]) -> None:
        for cidr_set, allocated in zip(self._sets, ranges, strict=False):
            cidr_set.release(allocated)

    def _tell(self, node: Object, status: str) -> None:
        metadata = node["metadata"]
        about = node_reference(metadata["name"], metadata["uid"])
        self._recorder.event(about, "Normal", status, f"Node {metadata['name']} status is now: {status}")


def cidr_sets(configuration: KubeControllerManagerConfiguration) -> Sequence[CIDRSet]:
    """Returns a set for each of --cluster-cidr, without the services' ranges.

    Raises ValueError for flags that contradict each other.
    """
    if configuration.cidr_allocator_type != "RangeAllocator":
        raise ValueError(
            f"--cidr-allocator-type is {configuration.cidr_allocator_type}, but there is no cloud provider: use RangeAllocator"
        )
    try:
        clusters = [ipaddress.ip_network(text.strip(), strict=False) for text in configuration.cluster_cidr.split(",")]
    except ValueError as error:
        raise ValueError(f"--cluster-cidr must be one range or two, such as 10.244.0.0/16: {error}") from None
    if len(clusters) > 2 or (len(clusters) == 2 and clusters[0].version == clusters[1].version):
        raise ValueError("--cluster-cidr takes one range, or two of which one is IPv4 and one is IPv6")
    if len(clusters) == 2 and configuration.node_cidr_mask_size:
        raise ValueError(
            "--node-cidr-mask-size is not for dual-stack clusters: use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6"
        )
    own = {4: configuration.node_cidr_mask_size_ipv4, 6: configuration.node_cidr_mask_size_ipv6}
    sets = [
        CIDRSet(cluster, configuration.node_cidr_mask_size or own[cluster.version] or _MASKS[cluster.version])
        for cluster in clusters
    ]
    for text in filter(None, configuration.service_cluster_ip_range.split(",")):
        services = ipaddress.ip_network(text.strip(), strict=False)
        for each in sets:
            if services.version == each.cluster.version and services.overlaps(each.cluster):
                each.occupy(services)
    return sets


def new(context: ControllerContext) -> Sequence[Controller]:
    """Returns the controllers; none without --allocate-node-cidrs."""
    if not context.configuration.allocate_node_cidrs:
        return []
    reconciler = NodeIPAM(context, cidr_sets(context.configuration))
    controller = context.controller(reconciler, workers=_WORKERS)
    controller.add_source(Informer(reconciler.nodes, reconciler.changed))
    return [controller]
