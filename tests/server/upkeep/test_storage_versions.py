"""StorageVersions; all that a real kube-apiserver 1.36.3 publishes were compared with these, and one stands here."""

import pytest

from conformance.exchange import Client
from fakeapiserver.apis import scheme
from fakeapiserver.server.upkeep.identity import api_server_id
from fakeapiserver.server.upkeep.storage_versions import check, storage_versions
from fakeapiserver.testing.background import running_server

GATES = {"StorageVersionAPI": True}
PATH = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"


def test_a_fresh_server_publishes_its_storage_versions() -> None:
    with running_server(feature_gates=GATES, runtime_config={"internal.apiserver.k8s.io/v1alpha1": "true"}) as server:
        client = Client(server.url, server.admin_token)
        found = client.send({"method": "GET", "path": f"{PATH}/autoscaling.horizontalpodautoscalers"}, [])["body"]
    [row] = found["status"]["storageVersions"]
    assert row["apiServerID"].startswith(api_server_id("x")[:10])
    assert (row["encodingVersion"], row["decodableVersions"]) == (
        "autoscaling/v2",
        ["autoscaling/v2", "autoscaling/v1"],
    )
    assert sorted(row["servedVersions"]) == ["autoscaling/v1", "autoscaling/v2"]
    assert found["status"]["commonEncodingVersion"] == "autoscaling/v2"
    assert found["status"]["conditions"][0]["status"] == "True"
    assert "managedFields" not in found["metadata"]


@pytest.mark.parametrize("version", ["v1.33", "v1.34", "v1.35", "v1.36"])
def test_every_stored_resource_has_one(version: str) -> None:
    served = scheme.serving(version, {}, {"api/all": "true"})
    names = {obj["metadata"]["name"] for obj in storage_versions(served, "a")}
    stored = {f"{gvr.group or 'core'}.{gvr.resource}" for gvr, row in served.resources.items() if "list" in row.verbs}
    assert stored - names == {"core.componentstatuses", "events.k8s.io.events"}
    assert names <= stored


def test_they_must_be_served() -> None:
    with pytest.raises(ValueError, match="storageversions aren't served"):
        check(scheme.serving("v1.36", GATES, {}))
