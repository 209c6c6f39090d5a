"""The storage version of each built-in resource, published as StorageVersions before the server is ready (the gate
StorageVersionAPI).

Upstream's filter refuses writes that come earlier; here no write can.

Upstream: k8s.io/apiserver/pkg/storageversion/{manager,updater}.go, pkg/endpoints/filters/storageversion.go.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis.recorded import read_table
from fakeapiserver.apis.scheme import Scheme
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.upkeep.bootstrap import store_object
from fakeapiserver.storage.interface import KeyExists

GATE: Final = "StorageVersionAPI"
_GROUP, _VERSION, _RESOURCE = "internal.apiserver.k8s.io", "v1alpha1", "storageversions"
_CORE: Final = "core"


def check(scheme: Scheme) -> None:
    """ValueError where they can't be written: upstream's server waits for that for half a minute, and ends."""
    gvr = GroupVersionResource(_GROUP, _VERSION, _RESOURCE)
    if scheme.features.enabled(GATE) and gvr not in scheme.resources:
        raise ValueError(
            f"--feature-gates={GATE}=true needs --runtime-config={_GROUP}/{_VERSION}=true: {_RESOURCE} aren't served"
        )


async def publish(scopes: RequestScopes, server_id: str) -> None:
    """Straight into storage, as a fresh server has them."""
    scope = scopes.lookup(_GROUP, _VERSION, _RESOURCE)
    assert scope is not None
    stamp = rfc3339(scopes.clock.now())
    for obj in storage_versions(scopes.table.scheme, server_id):
        with suppress(KeyExists):
            await store_object(scope, obj, stamp)


def storage_versions(scheme: Scheme, server_id: str) -> Iterator[Object]:
    """Yields a StorageVersion for each served resource, from the table that conformance.record.storage_versions
    records.
    """
    for name, row in _table(scheme.version).items():
        group, _, resource = name.rpartition(".")
        served = _served(scheme, GroupResource("" if group == _CORE else group, resource))
        if served:
            yield _storage_version(name, server_id, row["encoding"], row["decodable"], served)


@cache
def _table(version: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table(version, "storage_versions.json")
    return table


def encoding(version: str, resource: GroupResource) -> str | None:
    """The apiVersion in which a Kubernetes version stores a built-in resource; None if it isn't recorded."""
    row = _table(version).get(f"{resource.group or _CORE}.{resource.resource}")
    return str(row["encoding"]) if row is not None else None


def _served(scheme: Scheme, resource: GroupResource) -> list[str]:
    """Its versions, those that clients prefer first."""
    gvrs = (
        GroupVersionResource(resource.group, version, resource.resource)
        for version in scheme.groups.get(resource.group, ())
    )
    return [str(gvr.group_version) for gvr in gvrs if gvr in scheme.resources]


def _storage_version(name: str, server_id: str, encoding: str, decodable: list[str], served: list[str]) -> Object:
    own = {
        "apiServerID": server_id,
        "encodingVersion": encoding,
        "decodableVersions": decodable,
        "servedVersions": served,
    }
    condition = {
        "type": "AllEncodingVersionsEqual",
        "status": "True",
        "lastTransitionTime": "",
        "reason": "CommonEncodingVersionSet",
        "message": "Common encoding version set",
    }
    return {
        "kind": "StorageVersion",
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "metadata": {"name": name},
        "spec": {},
        "status": {"storageVersions": [own], "commonEncodingVersion": encoding, "conditions": [condition]},
    }
