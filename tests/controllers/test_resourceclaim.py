"""Pods get the claims that their templates ask for, and give them back."""

from fakeapiserver.component_helpers.objects import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from fakeapiserver.controllers.resourceclaim import CLAIM_NAME, FINALIZER
from tests.controllers.harness import Harness, Object, run

REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "x"}]}}


async def template(cluster: Harness) -> None:
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": REQUESTS}})


async def pod(cluster: Harness, **claim: str) -> Object:
    containers = [{"name": "c", "image": "x"}]
    spec = {"containers": containers, "resourceClaims": [{"name": "gpu", **claim}]}
    return await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": spec})


async def claims(cluster: Harness) -> list[Object]:
    found: list[Object] = (await cluster.of(RESOURCE_CLAIMS).list())["items"]
    return found


def test_a_claim_is_made_of_a_template_and_goes_when_its_pod_has_ended() -> None:
    async def scenario(cluster: Harness) -> None:
        await template(cluster)
        await pod(cluster, resourceClaimTemplateName="t")
        [claim] = await claims(cluster)
        assert claim["metadata"]["generateName"] == "p-gpu-"
        assert claim["metadata"]["annotations"] == {CLAIM_NAME: "gpu"}
        status = (await cluster.get(PODS, "p"))["status"]
        assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
        await cluster.patch_status(PODS, "p", {"phase": "Succeeded"})
        assert await claims(cluster) == []

    run(scenario, "resourceclaim-controller")


def test_a_missing_template_is_reported_and_waited_for() -> None:
    async def scenario(cluster: Harness) -> None:
        await pod(cluster, resourceClaimTemplateName="t")
        assert (await cluster.events())[0] == (
            "FailedResourceClaimCreation",
            'PodResourceClaim gpu: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found',
        )
        await template(cluster)
        assert len(await claims(cluster)) == 1

    run(scenario, "resourceclaim-controller")


def test_a_claim_without_users_is_deallocated() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "finalizers": [FINALIZER]}, "spec": REQUESTS})
        made = await pod(cluster, resourceClaimName="c")
        consumer = {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
        await cluster.patch_status(RESOURCE_CLAIMS, "c", {"allocation": ALLOCATION, "reservedFor": [consumer]})
        assert (await cluster.get(RESOURCE_CLAIMS, "c"))["status"]["reservedFor"] == [consumer]
        await cluster.of(PODS).delete("p", grace_period_seconds=0)
        await cluster.settle()
        claim = await cluster.get(RESOURCE_CLAIMS, "c")
        assert not claim.get("status")
        assert "finalizers" not in claim["metadata"]

    run(scenario, "resourceclaim-controller")
