"""Files of a real etcd, written by a real API server: each object that is read from them is what that server's API shows.

`FAKEAPISERVER_REFERENCE_STATE` names the folder of a running one: it has `kubeconfig`, and of its etcd `etcd.log` and the folder `etcd`.
"""

import os
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from msgspec import json

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import scheme
from fakeapiserver.client import kubeconfig
from fakeapiserver.registry.generic.kind import BuiltinKind
from fakeapiserver.registry.strategies import strategy_for
from fakeapiserver.state.etcd import objects, snapshot

REFERENCE: Final = os.environ.get("FAKEAPISERVER_REFERENCE_STATE", "")
pytestmark = pytest.mark.skipif(
    not REFERENCE, reason="FAKEAPISERVER_REFERENCE_STATE names no folder of a real API server and its etcd"
)
NAMESPACE: Final = "etcd-files"
OBJECTS: Final[list[Object]] = [*yaml.safe_load_all((Path(__file__).parent / "objects.yaml").read_text())]
_MERGE_PATCH: Final = "application/merge-patch+json"
_OWN_KEYS: Final = re.compile("compact_rev_key|/registry/(ranges|masterleases|peerserverleases)/.+")


class Server:
    """A real API server."""

    def __init__(self, folder: Path) -> None:
        config = kubeconfig.load(folder / "kubeconfig")
        self._client = httpx.Client(
            base_url=config.host, verify=False, headers={"Authorization": f"Bearer {config.token}"}, timeout=30
        )
        self._resources: dict[tuple[str, str], Object] = {}

    def ask(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json") -> Any:
        """The answer's object. HTTPStatusError unless it succeeds."""
        content = None if body is None else json.encode(body)
        answer = self._client.request(method, path, content=content, headers={"Content-Type": content_type})
        if answer.status_code >= 400:
            raise httpx.HTTPStatusError(answer.text, request=answer.request, response=answer)
        return answer.json()

    def collection(self, obj: Object) -> str:
        """The path of all objects of its kind, in its namespace if it has one."""
        resource = self.resource(obj["apiVersion"], obj["kind"])
        namespace = f"namespaces/{NAMESPACE}/" if resource["namespaced"] else ""
        return f"{_root(obj['apiVersion'])}/{namespace}{resource['name']}"

    def resource(self, api_version: str, kind: str) -> Object:
        """A row of discovery."""
        if (api_version, kind) not in self._resources:
            for row in self.ask("GET", _root(api_version))["resources"]:
                if "/" not in row["name"]:
                    self._resources[api_version, row["kind"]] = row
        return self._resources[api_version, kind]

    def create(self, obj: Object) -> None:
        self.ask("POST", self.collection(obj), obj)

    def delete(self, obj: Object) -> None:
        """Deletes it, also if it waits for a controller, which doesn't run."""
        path = f"{self.collection(obj)}/{obj['metadata']['name']}"
        if self.ask("DELETE", path, {"gracePeriodSeconds": 0})["metadata"].get("finalizers"):
            self.ask("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE_PATCH)

    def objects(self, api_version: str, kind: str) -> dict[str, Object]:
        """uid -> object, of all namespaces."""
        items = self.ask("GET", f"{_root(api_version)}/{self.resource(api_version, kind)['name']}")["items"]
        return {item["metadata"]["uid"]: {**item, "apiVersion": api_version, "kind": kind} for item in items}


class Etcd:
    """The etcd behind it."""

    def __init__(self, folder: Path) -> None:
        address = re.search(r'"msg":"serving client traffic[^}]*"address":"([^"]+)"', (folder / "etcd.log").read_text())
        assert address
        self._client = httpx.Client(base_url=f"http://{address[1]}", timeout=30)
        self.database = folder / "etcd/member/snap/db"

    def ask(self, path: str, body: Object) -> Any:
        answer = self._client.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    def snapshot(self) -> bytes:
        """The file that `etcdctl snapshot save` writes."""
        with self._client.stream("POST", "/v3/maintenance/snapshot", json={}) as answer:
            return b"".join(b64decode(json.decode(line)["result"]["blob"]) for line in answer.iter_lines())

    @property
    def revision(self) -> int:
        return int(self.ask("/v3/maintenance/status", {})["header"]["revision"])

    def compact(self) -> int:
        """Returns the revision up to which the history is gone."""
        revision = self.revision
        self.ask("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def defragment(self) -> None:
        self.ask("/v3/maintenance/defragment", {})


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


@pytest.fixture(scope="module")
def server() -> Server:
    return Server(Path(REFERENCE))


@pytest.fixture(scope="module")
def etcd(server: Server) -> Iterator[Etcd]:
    """An etcd with objects of many kinds, some of them written several times, and with deleted ones."""
    with suppress(httpx.HTTPStatusError):  # it stays, since deleting it needs a controller
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        for obj in OBJECTS:
            server.create(obj)
            if obj["kind"] == "CustomResourceDefinition":
                _await_definition(server, obj)
        for number in range(20):
            patch = {"metadata": {"annotations": {"number": str(number)}}, "spec": {"replicas": number}}
            server.ask("PATCH", f"{_root('apps/v1')}/namespaces/{NAMESPACE}/deployments/web", patch, _MERGE_PATCH)
            temporary = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"temporary-{number}"}}
            server.create(temporary)
            server.delete(temporary)
        yield Etcd(Path(REFERENCE))
    finally:
        for obj in reversed(OBJECTS):
            with suppress(httpx.HTTPStatusError, KeyError):  # it was never created
                server.delete(obj)


def _await_definition(server: Server, definition: Object) -> None:
    """A watch ends with the first state in which the custom resource is served."""
    name = definition["metadata"]["name"]
    query = f"?watch=1&fieldSelector=metadata.name={name}&resourceVersion=0&timeoutSeconds=20"
    with server._client.stream("GET", server.collection(definition) + query) as answer:
        for line in answer.iter_lines():
            conditions = json.decode(line)["object"].get("status", {}).get("conditions") or ()
            if any(item["type"] == "Established" and item["status"] == "True" for item in conditions):
                return
    raise AssertionError(f"{name} isn't served")


def expect_equal(server: Server, loaded: objects.LoadedSnapshot) -> None:
    """Each object that wasn't written since is as the API shows it, and none is missing."""
    assert all(_OWN_KEYS.fullmatch(key) for key, _ in loaded.untaken), loaded.untaken
    kinds = {(obj["apiVersion"], obj["kind"]) for _, obj in loaded.objects}
    shown = {uid: obj for kind in kinds for uid, obj in server.objects(*kind).items()}
    read = {obj["metadata"]["uid"]: _decoded(obj) for _, obj in loaded.objects}
    new = {uid for uid, obj in shown.items() if int(obj["metadata"]["resourceVersion"]) > loaded.revision}
    assert {uid: obj for uid, obj in read.items() if uid not in new} == {
        uid: obj for uid, obj in shown.items() if uid not in new
    }
    assert len(read) == len(loaded.objects) >= 200
    assert {shown[uid]["kind"] for uid in new} <= {"Lease"}  # the API server renews its own


def _decoded(obj: Object) -> Object:
    """The object with the zeros and defaults that API servers add when they read it."""
    kinds = scheme.load()
    resource = kinds.kinds.get(GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"]))
    if resource:
        kind = BuiltinKind(resource.gvk, resource.definition, kinds.definitions, strategy_for(resource).default)
        kind.decode(obj)
        kind.default(obj)
    return obj


def test_a_snapshot_has_the_objects_of_the_api(server: Server, etcd: Etcd) -> None:
    data = etcd.snapshot()
    loaded = objects.objects_of(data)
    expect_equal(server, loaded)
    stored = {(obj["apiVersion"], obj["kind"], obj["metadata"]["name"]) for _, obj in loaded.objects}
    assert {obj["metadata"]["name"] for obj in OBJECTS} <= {name for _, _, name in stored}
    assert {obj["kind"] for obj in OBJECTS} <= {kind for _, kind, _ in stored}
    assert not any("temporary" in key for key, _ in loaded.objects)


def test_revisions_are_those_of_etcd(etcd: Etcd) -> None:
    before = etcd.revision
    keyspace = snapshot.read(etcd.snapshot())
    assert before <= keyspace.revision <= etcd.revision
    assert keyspace.storage_version == "3.6.0"
    assert keyspace.consistent_index > 0
    key = f"/registry/deployments/{NAMESPACE}/web".encode()
    assert keyspace.keys[key].version == 21


def test_a_members_file_has_the_same_keys(server: Server, etcd: Etcd) -> None:
    """Taking a snapshot makes etcd write what it still holds back."""
    before = snapshot.read(etcd.snapshot())
    loaded = objects.objects_of(etcd.database)
    expect_equal(server, loaded)
    assert loaded.revision >= before.revision


def test_a_compacted_and_a_defragmented_file_have_the_objects_too(server: Server, etcd: Etcd) -> None:
    compacted = etcd.compact()
    after_compaction = objects.objects_of(etcd.snapshot())
    etcd.defragment()
    defragmented = etcd.snapshot()
    for loaded in (after_compaction, objects.objects_of(defragmented)):
        assert loaded.compacted == compacted
        assert loaded.revision >= compacted
        expect_equal(server, loaded)
    etcd.snapshot()
    expect_equal(server, objects.objects_of(etcd.database))


@pytest.mark.parametrize("at", [0, 0.25, 0.5, 0.75, 1])
def test_a_changed_snapshot_is_refused(etcd: Etcd, at: float) -> None:
    data = bytearray(etcd.snapshot())
    data[int(at * (len(data) - 1))] ^= 0x10
    with pytest.raises(
        ValueError, match=r"^the snapshot is damaged: the SHA-256 at its end is not that of its content"
    ):
        objects.objects_of(bytes(data))
