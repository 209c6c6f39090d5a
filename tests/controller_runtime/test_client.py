"""The controller runtime's client: dicts and typed objects, what its options say of every write, subresources, interceptors."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.errors import new_forbidden
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.discovery import DiscoveryClient, MemoryCache
from fakeapiserver.client.dynamic import JSON_PATCH, STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import (
    StatusError,
    is_already_exists,
    is_conflict,
    is_forbidden,
    is_invalid,
    is_not_found,
)
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.rest_mapper import RESTMapper
from fakeapiserver.controller_runtime import gvk
from fakeapiserver.controller_runtime.client import Client, Reader
from fakeapiserver.controller_runtime.scheme import kind

# no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

CONFIG_MAP, DEPLOYMENT, POD, NAMESPACE = (
    *(gvk("v1", "ConfigMap"), gvk("apps/v1", "Deployment")),
    *(gvk("v1", "Pod"), gvk("v1", "Namespace")),
)
Scenario = Callable[[Client], Awaitable[None]]


@pytest.fixture
def run(fake_cluster: Cluster) -> Callable[[Scenario], None]:
    """Runs a scenario with a client of a fresh cluster."""

    def running(scenario: Scenario) -> None:
        async def work() -> None:
            async with RESTClient(kubeconfig.load(fake_cluster.kubeconfig)) as rest:
                mapper = RESTMapper(MemoryCache(DiscoveryClient(rest)))
                await scenario(Client(DynamicClient(rest), mapper, namespace="default"))

        asyncio.run(work())

    return running


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def pod(name: str) -> Object:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_reads_and_every_kind_of_write(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        made = await client.create(config_map("a", x="1"))
        with pytest.raises(StatusError) as caught:
            await client.create(config_map("a"))
        assert is_already_exists(caught.value)
        updated = await client.update({**made, "data": {"x": "2"}})
        with pytest.raises(StatusError) as caught:
            await client.update(made)
        assert is_conflict(caught.value)
        patched = await client.patch(updated, {"data": {"y": "3"}})
        assert patched["data"] == {"x": "2", "y": "3"}
        patched = await client.patch(updated, [{"op": "remove", "path": "/data/x"}], patch_type=JSON_PATCH)
        patched = await client.patch(patched, {"data": {"z": "4"}}, patch_type=STRATEGIC_MERGE_PATCH)
        assert (await client.get(CONFIG_MAP, "a"))["data"] == {"y": "3", "z": "4"}
        assert await client.find(CONFIG_MAP, "a") == patched
        assert await client.find(CONFIG_MAP, "nobody") is None
        with pytest.raises(StatusError) as caught:
            await client.get(CONFIG_MAP, "nobody")
        assert is_not_found(caught.value)
        # with another one's uid, it isn't meant
        with pytest.raises(StatusError) as caught:
            await client.delete({**made, "metadata": {**made["metadata"], "uid": "another"}})
        assert is_conflict(caught.value)
        await client.delete(made)
        assert await client.find(CONFIG_MAP, "a") is None

    run(scenario)


def test_lists_by_labels_fields_and_number(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        for name in "abcd":
            obj = config_map(name)
            obj["metadata"]["labels"] = {"half": "first" if name in "ab" else "second"}
            await client.create(obj)

        async def listed(**selection: Any) -> str:
            return "".join(obj["metadata"]["name"] for obj in await client.list(CONFIG_MAP, **selection))

        assert await listed(labels="half") == "abcd"
        assert await listed(labels={"half": "second"}) == "cd"
        assert await listed(labels="half in (first),half!=second", limit=1) == "a"
        assert await listed(fields={"metadata.name": "c"}) == "c"
        assert await listed(fields={"metadata.name": "a,metadata.namespace=default"}) == ""
        with pytest.raises(StatusError, match="is not a known field selector"):
            await listed(fields={"data.x": "1"})
        await client.delete_all_of(CONFIG_MAP, labels={"half": "first"})
        assert await listed(labels="half") == "cd"
        assert len(await client.list(NAMESPACE, limit=2)) == 2

    run(scenario)


def test_dry_runs_store_nothing(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        await client.create(config_map("a", x="1"))
        trying = client.with_options(dry_run=True, field_owner="me")
        assert (await trying.create(config_map("b")))["metadata"]["uid"]
        assert (await trying.patch(config_map("a"), {"data": {"x": "2"}}))["data"] == {"x": "2"}
        assert (await trying.apply(config_map("a", x="3"), force=True))["data"] == {"x": "3"}
        await trying.delete(config_map("a"))
        await trying.delete_all_of(CONFIG_MAP)
        assert (await trying.get(CONFIG_MAP, "a"))["data"] == {"x": "1"}
        assert await client.find(CONFIG_MAP, "b") is None

    run(scenario)


def test_every_write_names_the_field_owner(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        def owners(obj: Object) -> set[tuple[str, str]]:
            return {(entry["manager"], entry["operation"]) for entry in obj["metadata"]["managedFields"]}

        owned = client.with_options(field_owner="me")
        made = await owned.create(config_map("a", x="1"))
        assert owners(made) == {("me", "Update")}
        other = client.with_options(field_owner="other")
        assert owners(await other.patch(made, {"data": {"y": "2"}})) == {("me", "Update"), ("other", "Update")}
        with pytest.raises(StatusError, match='conflict with "me"') as caught:
            await other.apply(config_map("a", x="3"))
        assert is_conflict(caught.value)
        applied = await other.apply(config_map("a", x="3"), force=True)
        assert ("other", "Apply") in owners(applied)
        with pytest.raises(ValueError, match="apply needs a field owner"):
            await client.apply(config_map("a"))

    run(scenario)


@pytest.mark.parametrize(("validation", "refused"), [("Strict", True), ("Warn", False), ("Ignore", False), ("", False)])
def test_field_validation(run: Callable[[Scenario], None], validation: str, refused: bool) -> None:
    async def scenario(client: Client) -> None:
        strict = client.with_options(field_validation=validation)
        obj = {**config_map("a"), "nonsense": 1}
        if refused:
            with pytest.raises(StatusError, match='unknown field "nonsense"'):
                await strict.create(obj)
        else:
            assert "nonsense" not in await strict.create(obj)

    run(scenario)


def test_the_clients_namespace_is_the_only_one(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        team = client.with_options(namespace="team")
        assert (await team.create(config_map("a")))["metadata"]["namespace"] == "team"
        assert (await team.get(CONFIG_MAP, "a"))["metadata"]["namespace"] == "team"
        assert await client.find(CONFIG_MAP, "a") is None
        nowhere = client.with_options(namespace="")
        assert (await nowhere.get(CONFIG_MAP, "a", "team"))["metadata"]["namespace"] == "team"
        for refused in (
            team.get(CONFIG_MAP, "a", "default"),
            team.list(CONFIG_MAP, namespace="default"),
            team.create({**config_map("b"), "metadata": {"name": "b", "namespace": "default"}}),
        ):
            with pytest.raises(ValueError, match="namespace default does not match the namespace team on the client"):
                await refused
        assert [obj["metadata"]["name"] for obj in await team.list(CONFIG_MAP)] == ["a"]
        # what is in no namespace stays so
        assert (await team.get(NAMESPACE, "team"))["metadata"]["name"] == "team"
        with pytest.raises(ValueError, match="ConfigMap 'a' names no namespace"):
            await nowhere.create(config_map("a"))
        assert "a" in [obj["metadata"]["name"] for obj in await nowhere.list(CONFIG_MAP)]

    run(scenario)


def test_status_and_other_subresources(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        made = await client.create(deployment("web"))
        made["spec"]["replicas"] = 9
        made["status"] = {"observedGeneration": 1, "replicas": 2}
        stored = await client.update_status(made)
        assert (stored["spec"]["replicas"], stored["status"]["replicas"]) == (1, 2)
        stored = await client.patch_status(stored, {"status": {"replicas": 3}})
        assert stored["status"]["replicas"] == 3
        scale = await client.get_subresource(made, "scale")
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
        scaled = await client.patch(deployment("web"), {"spec": {"replicas": 5}}, "scale")
        assert scaled["spec"]["replicas"] == 5
        await client.create(pod("p"))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        await client.create_subresource(pod("p"), "eviction", eviction)
        assert await client.find(POD, "p") is None
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        await client.create(account)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["me"]}}
        answer = await client.create_subresource(account, "token", request)
        assert answer["status"]["token"].count(".") == 2
        scale["spec"]["replicas"] = 7
        scale["metadata"].pop("resourceVersion")
        assert (await client.update_subresource(made, "scale", scale))["spec"]["replicas"] == 7
        assert (await client.get(DEPLOYMENT, "web"))["spec"]["replicas"] == 7

    run(scenario)


# ------------------------------------------------------------------------------------------- typed kinds


@kind("v1", "ConfigMap")
class Modelled(BaseModel):
    metadata: dict[str, Any]
    data: dict[str, str] = {}


@kind("v1", "ConfigMap")
@dataclasses.dataclass
class Plain:
    metadata: dict[str, Any]
    data: dict[str, str] = dataclasses.field(default_factory=dict)


@kind("v1", "ConfigMap")
class Packed(msgspec.Struct):
    metadata: dict[str, Any]
    data: dict[str, str] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize("typed", [Modelled, Plain, Packed])
def test_what_goes_in_typed_comes_out_so(run: Callable[[Scenario], None], typed: Any) -> None:
    async def scenario(client: Client) -> None:
        owned = client.with_options(field_owner="me")
        made = await owned.create(typed(metadata={"name": "a"}, data={"x": "1"}))
        assert isinstance(made, typed)
        made.data["x"] = "2"
        assert (await owned.update(made)).data == {"x": "2"}
        found = await owned.get(typed, "a")
        assert isinstance(found, typed)
        assert found.data == {"x": "2"}
        assert (await owned.patch(found, {"data": {"y": "3"}})).data == {"x": "2", "y": "3"}
        applied = await owned.apply(typed(metadata={"name": "b"}, data={"z": "1"}))
        assert isinstance(applied, typed)
        assert sorted(each.metadata["name"] for each in await owned.list(typed)) == ["a", "b"]
        await owned.delete(found)
        assert await owned.find(typed, "a") is None

    run(scenario)


def test_a_type_without_a_kind_is_reported(run: Callable[[Scenario], None]) -> None:
    class Nothing(BaseModel):
        metadata: dict[str, Any]

    async def scenario(client: Client) -> None:
        with pytest.raises(ValueError, match="Nothing is of no kind: decorate it"):
            await client.get(Nothing, "a")
        with pytest.raises(ValueError, match="the object names no apiVersion or kind"):
            await client.create({"metadata": {"name": "a"}})

    run(scenario)


# ------------------------------------------------------------------------------------------ interceptors


def test_an_interceptor_sees_changes_and_refuses_every_write(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        seen: list[str] = []

        async def intercepting(
            verb: str, obj: Object, subresource: str, write: Callable[[Object], Awaitable[Object]]
        ) -> Object:
            seen.append(f"{verb} {obj['metadata'].get('name', '')}{'/' + subresource if subresource else ''}")
            if verb == "delete":
                raise new_forbidden(GroupResource("", "configmaps"), "a", "not today")
            return await write({**obj, "data": {**obj.get("data", {}), "by": "me"}} if verb == "create" else obj)

        watched = client.with_options(interceptor=intercepting, field_owner="me")
        made = await watched.create(config_map("a"))
        assert made["data"] == {"by": "me"}
        await watched.update(made)
        await watched.patch(made, {"data": {"x": "1"}})
        await watched.apply(config_map("a", y="2"))
        with pytest.raises(StatusError, match="not today") as caught:
            await watched.delete(made)
        assert is_forbidden(caught.value)
        web = await client.create(deployment("web"))
        await watched.update_status(web)
        await watched.delete_all_of(CONFIG_MAP)
        assert seen == [
            "create a",
            "update a",
            "patch a",
            "apply a",
            "delete a",
            "update web/status",
            "deletecollection ",
        ]

    run(scenario)


def test_refusals_are_the_servers(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(StatusError, match="a lowercase RFC 1123 subdomain") as caught:
            await client.create(config_map("No Name"))
        assert is_invalid(caught.value)

    run(scenario)


def test_another_reader_stands_before_reads(run: Callable[[Scenario], None]) -> None:
    class Counting:
        """Counts what is read."""

        def __init__(self, inner: Reader) -> None:
            self.inner = inner
            self.read: list[str] = []

        async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Object:
            self.read.append(name)
            return await self.inner.get(kind, name, namespace)

        async def list(self, kind: GroupVersionKind, **options: Any) -> Sequence[Object]:
            self.read.append(kind.kind)
            return await self.inner.list(kind, **options)

    async def scenario(client: Client) -> None:
        await client.create(config_map("a"))
        counting = Counting(client.reader)
        counted = client.with_options(reader=counting)
        await counted.get(CONFIG_MAP, "a")
        await counted.list(CONFIG_MAP)
        assert counting.read == ["a", "ConfigMap"]

    run(scenario)
