"""Quotas: what objects use, and that writers who come together never use more than there is."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.plugins.resourcequota import ResourceQuota
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.apis.quota.evaluators import evaluator_of
from fakeapiserver.auth.interfaces import UserInfo

Json = dict[str, Any]
WRITERS, ROOM = 32, 10
# what admission charges, without the controller that counts again
pytestmark = pytest.mark.fake_cluster(controllers=())

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
PORTS = [{"name": f"p{i}", "port": 80 + i} for i in range(3)]
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def test_many_writers_at_once_never_overspend(fake_cluster: Cluster) -> None:
    client = Client(fake_cluster.url, fake_cluster.token)
    hard = {"configmaps": str(ROOM)}
    client.send({"method": "POST", "path": QUOTAS, "body": {"metadata": {"name": "q"}, "spec": {"hard": hard}}}, [])
    status = {"status": {"hard": hard, "used": {"configmaps": "0"}}}
    client.send(
        {"method": "PATCH", "path": f"{QUOTAS}/q/status", "body": status, "type": "application/merge-patch+json"}, []
    )

    def create(i: int) -> int:
        own = Client(fake_cluster.url, fake_cluster.token)
        answer = own.send({"method": "POST", "path": CONFIG_MAPS, "body": {"metadata": {"name": f"c{i}"}}}, [])
        return int(answer["status"])

    with ThreadPoolExecutor(WRITERS) as pool:
        answers = list(pool.map(create, range(WRITERS)))
    assert sorted(answers) == [201] * ROOM + [403] * (WRITERS - ROOM)
    used = client.send({"method": "GET", "path": f"{QUOTAS}/q"}, [])["body"]["status"]["used"]
    assert used == {"configmaps": str(ROOM)}


SERVICES = "/api/v1/namespaces/default/services"
LIMITS = {"ports": {"services": "60", "services.nodeports": "70"}, "services": {"services": "45"}}


def make_quotas(client: Client) -> None:
    for name, hard in LIMITS.items():
        body = {"metadata": {"name": name}, "spec": {"hard": hard}}
        client.send({"method": "POST", "path": QUOTAS, "body": body}, [])
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        change = {"method": "PATCH", "path": f"{QUOTAS}/{name}/status", "body": status, "type": MERGE}
        client.send(change, [])


def test_creations_updates_deletions_and_dry_runs_at_once_are_charged_exactly(fake_cluster: Cluster) -> None:
    """Each writer knows what its own services have; without a controller nothing is ever given back."""
    make_quotas(Client(fake_cluster.url, fake_cluster.token))

    def write(writer: int) -> tuple[int, int]:
        """Returns how many services and node ports its accepted writes must be charged for."""
        client, random = Client(fake_cluster.url, fake_cluster.token), Random(writer)
        ports: dict[str, int] = {}
        charged = [0, 0]
        for i in range(8):
            known = random.choice([*ports, f"s{writer}-{i}"])
            count = random.choice((0, 1, 2, 3))
            dry = "?dryRun=All" if random.random() < 0.2 else ""
            if known in ports and random.random() < 0.3:
                client.send({"method": "DELETE", "path": f"{SERVICES}/{known}"}, [])
                del ports[known]
                continue
            spec = {"type": "NodePort" if count else "ClusterIP", "ports": PORTS[: count or 1]}
            body = {"metadata": {"name": known}, "spec": spec}
            request = {"method": "POST", "path": SERVICES + dry, "body": body}
            if known in ports:
                request = {"method": "PATCH", "path": f"{SERVICES}/{known}{dry}", "body": body, "type": MERGE}
            if client.send(request, [])["status"] in (200, 201) and not dry:
                charged[0] += known not in ports
                charged[1] += max(count - ports.get(known, 0), 0)
                ports[known] = count
        return charged[0], charged[1]

    with ThreadPoolExecutor(WRITERS) as pool:
        charges = list(pool.map(write, range(WRITERS)))
    services, ports = (sum(numbers) for numbers in zip(*charges, strict=True))
    found = Client(fake_cluster.url, fake_cluster.token).send({"method": "GET", "path": QUOTAS}, [])["body"]["items"]
    used = {quota["metadata"]["name"]: quota["status"]["used"] for quota in found}
    assert used == {
        "ports": {"services": str(services), "services.nodeports": str(ports)},
        "services": {"services": str(services)},
    }
    assert services <= int(LIMITS["services"]["services"])
    assert ports <= int(LIMITS["ports"]["services.nodeports"])


class SlowQuotas:
    """Stored quotas, to which a write takes its time."""

    def __init__(self, limits: Mapping[str, Json]) -> None:
        self.quotas: dict[str, Json] = {
            name: {
                "metadata": {"name": name},
                "spec": {"hard": hard},
                "status": {"hard": hard, "used": dict.fromkeys(hard, "0")},
            }
            for name, hard in limits.items()
        }

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return self.quotas.get(name)

    def list(self, resource: str, namespace: str = "") -> list[Json]:
        return list(self.quotas.values())

    def generation(self, resources: tuple[str, ...]) -> int:
        return 0

    async def create(self, resource: str, obj: Json) -> None: ...

    async def update_status(self, resource: str, namespace: str, name: str, change: Callable[[Json], Json]) -> None:
        await asyncio.sleep(0)
        self.quotas[name] = change(self.quotas[name])


def test_what_one_quota_refuses_no_other_is_charged_for() -> None:
    quotas = SlowQuotas({"a": {"count/configmaps": "20"}, "b": {"count/configmaps": "10"}})
    plugin = ResourceQuota(Initializer(quotas, writer=quotas))
    kind, resource = GroupVersionKind("", "v1", "ConfigMap"), GroupVersionResource("", "v1", "configmaps")

    async def create(i: int) -> None:
        body = {"metadata": {"name": f"c{i}"}}
        await plugin.validate(Attributes("CREATE", kind, resource, "", "shop", "", body, None, UserInfo("jane")))

    async def create_all() -> list[BaseException | None]:
        return await asyncio.gather(*(create(i) for i in range(WRITERS)), return_exceptions=True)

    answers = asyncio.run(create_all())
    assert [answer for answer in answers if answer is None] == [None] * 10
    assert {name: quota["status"]["used"] for name, quota in quotas.quotas.items()} == {
        name: {"count/configmaps": "10"} for name in "ab"
    }


POD: Json = {
    "metadata": {"name": "p"},
    "spec": {
        "overhead": {"cpu": "100m"},
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}, "limits": {"cpu": "2"}}}
        ],
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1500m"}}}],
    },
}
CLAIM: Json = {
    "metadata": {"name": "c"},
    "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
    "status": {"allocatedResources": {"storage": "5"}},
}
GPUS = "gpu.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("resource", "obj", "used"),
    [
        ("pods", POD, {"pods": "1", "requests.cpu": "1600m", "limits.cpu": "2100m", "requests.nvidia.com/gpu": "2"}),
        (
            "pods",  # which is being made smaller
            POD | {"status": {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "3"}}}]}},
            {"requests.cpu": "3100m"},
        ),
        ("pods", POD | {"status": {"phase": "Failed"}}, {"count/pods": "1", "pods": None}),
        (
            "pods",
            {**POD, "metadata": {"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 5}},
            {"pods": None},
        ),
        ("services", {"spec": {"type": "NodePort", "ports": [{}, {}]}}, {"services.nodeports": "2", "services": "1"}),
        (
            "services",
            {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}},
            {"services.nodeports": "2", "services.loadbalancers": "1"},
        ),
        (
            "persistentvolumeclaims",
            CLAIM,
            {"requests.storage": "5", "gold.storageclass.storage.k8s.io/requests.storage": "5"},
        ),
        (
            "resourceclaims.resource.k8s.io",
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
                            {
                                "firstAvailable": [
                                    {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                                    {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
                                ]
                            },
                        ]
                    }
                }
            },
            {GPUS: "5", "requests.deviceclass.resource.kubernetes.io/gpu": "5"},
        ),
        ("secrets", {}, {"secrets": "1", "count/secrets": "1"}),
        ("deployments.apps", {}, {"count/deployments.apps": "1"}),
    ],
)
def test_what_an_object_uses(resource: str, obj: Json, used: dict[str, str | None]) -> None:
    name, _, group = resource.partition(".")
    found = evaluator_of(GroupResource(group, name), SlowQuotas({})).usage(obj, 100.0)
    assert {key: str(found[key]) if key in found else None for key in used} == used
