"""The zone or node that each endpoint serves, for services that keep their traffic near.

Upstream: k8s.io/endpointslice/trafficdist/trafficdist.go.
"""

from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.endpoints.endpoint_slices import slice_copy
from fakeapiserver.controllers.endpointslice.topology_cache import SliceInfo, endpoint_ready

# Whether hints name nodes too.
DISTRIBUTIONS: Final = {"PreferClose": False, "PreferSameZone": False, "PreferSameNode": True}


def reconcile_hints(distribution: str, info: SliceInfo) -> None:
    """Ready endpoints of all slices have the hints that `distribution` wants; unchanged slices without are updated."""
    with_nodes = DISTRIBUTIONS[distribution]
    unchanged = []
    for endpoint_slice in info.unchanged:
        if any(_needs_update(endpoint, with_nodes) for endpoint in endpoint_slice.get("endpoints") or ()):
            info.to_update.append(slice_copy(endpoint_slice))
        else:
            unchanged.append(endpoint_slice)
    info.unchanged = unchanged
    for endpoint_slice in (*info.to_create, *info.to_update):
        endpoint_slice["endpoints"] = [_hinted(endpoint, with_nodes) for endpoint in endpoint_slice["endpoints"]]


def _wanted(endpoint: Object, with_nodes: bool) -> Object:
    hints: Object = {}
    if endpoint.get("zone") is not None:
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if with_nodes and endpoint.get("nodeName") is not None:
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints


def _needs_update(endpoint: Object, with_nodes: bool) -> bool:
    if not endpoint_ready(endpoint):
        return False
    hints = endpoint.get("hints") or {}
    return {name: value for name, value in hints.items() if value} != _wanted(endpoint, with_nodes)


def _hinted(endpoint: Object, with_nodes: bool) -> Object:
    if not endpoint_ready(endpoint):
        return endpoint
    bare = {name: value for name, value in endpoint.items() if name != "hints"}
    hints = _wanted(endpoint, with_nodes)
    return {**bare, "hints": hints} if hints else bare
