"""Servers on an etcd with encrypted values. The statuses of unreadable objects are those of a kube-apiserver 1.36.3."""

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import kubeconfig
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.messages import PutRequest, RangeRequest, RequestOp, TxnRequest
from tests.server.etcd.test_servers import (
    CONFIG_MAPS,
    DEFINITION,
    REFERENCE,
    WIDGET,
    WIDGETS,
    ask,
    config_map,
    eventually,
    reference_etcd,
    server,
)
from tests.storage.encryption.examples import GROUPED, IDENTITY, LONG, OTHER, RULES, SHORT, STORED, provider, written

Rules = dict[str, list[dict[str, object]]]
# The configuration of the real API server in the folder FAKEAPISERVER_REFERENCE_STATE: its first provider of secrets encrypts.
REFERENCE_ENCRYPTION: Final = os.environ.get("FAKEAPISERVER_REFERENCE_ENCRYPTION", "")
SECRETS: Final = "/api/v1/namespaces/default/secrets"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
SECRET: Final[Object] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}, "data": {"a": "Yg=="}}
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
WRONG_BOX: Final = "output array was not large enough for encryption"
pytestmark = pytest.mark.usefixtures("nacl")


@pytest.fixture(scope="module")
def nacl() -> None:
    pytest.importorskip("nacl", reason="the extra [etcd] isn't installed")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "encryption.json"


def use(file: Path, rules: Rules) -> Path:
    file.write_bytes(written(rules))
    return file


async def stored(etcd: EtcdProcess, key: str) -> bytes:
    return await stored_at(etcd.url, key)


async def stored_at(url: str, key: str) -> bytes:
    client = Client.of([url])
    (kv,) = (await client.range(RangeRequest(key.encode()))).kvs
    await client.close()
    return kv.value


async def put(etcd: EtcdProcess, values: dict[str, bytes]) -> None:
    """Writes keys as another program does."""
    client = Client.of([etcd.url])
    client.is_patient = True  # an etcd that has just started may take no connection yet
    puts = tuple(RequestOp(request_put=PutRequest(key.encode(), value)) for key, value in values.items())
    await client.txn(TxnRequest(success=puts))
    await client.close()


def test_what_a_real_server_has_stored_is_served_and_written_again(etcd: EtcdProcess, file: Path) -> None:
    """Including a custom resource and what a wildcard covers. The server's own objects are encrypted, too."""

    async def scenario() -> None:
        await put(etcd, STORED)
        async with server(etcd.url, encryption_config=use(file, RULES)) as client:
            await ask(client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS_OF_EXAMPLE)
            widgets = "/apis/example.com/v1/namespaces/default/widgets"
            paths = f"{SECRETS}/s1", f"{CONFIG_MAPS}/c1", f"{DEPLOYMENTS}/d1", f"{widgets}/w"
            for path in paths:
                obj = await eventually(lambda path=path: ask(client, "GET", path))
                changed = await ask(client, "PUT", path, {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}})
                assert changed["metadata"]["labels"] == {"a": "b"}
        for key, value in STORED.items():
            if "serviceaccounts" not in key:
                assert await stored(etcd, key) != value
            assert (await stored(etcd, key)).startswith(value[:16])
        assert (await stored(etcd, "/registry/namespaces/default")).startswith(b"k8s:enc:secretbox:v1:box2:")
        async with server(etcd.url, encryption_config=file) as client:
            assert (await ask(client, "GET", f"{SECRETS}/s1"))["data"] == {"a": "Yg=="}
            listed = await ask(client, "GET", SECRETS)
            assert [item["metadata"]["labels"] for item in listed["items"]] == [{"a": "b"}]

    asyncio.run(scenario())


def test_an_update_that_changes_nothing_writes_with_the_first_key(etcd: EtcdProcess, file: Path) -> None:
    objects = (
        (SECRETS, SECRET, "/registry/secrets/default/s1"),
        (CONFIG_MAPS, config_map("c1"), "/registry/configmaps/default/c1"),
        (WIDGETS, WIDGET, "/registry/apps.example.com/widgets/default/w"),
    )
    old, new = provider("aescbc", old=LONG), provider("aescbc", new=OTHER, old=LONG)
    names = "secrets", "configmaps", "*.apps.example.com"

    async def scenario() -> None:
        async with server(etcd.url, encryption_config=use(file, {name: [old] for name in names})) as client:
            await ask(client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            for path, obj, _ in objects:
                await eventually(lambda path=path, obj=obj: ask(client, "POST", path, obj))
        async with server(etcd.url, encryption_config=use(file, {name: [new] for name in names})) as client:
            for path, obj, key in objects:
                name = f"{path}/{obj['metadata']['name']}"
                before = await eventually(lambda name=name: ask(client, "GET", name))
                rewritten = await ask(client, "PUT", name, before)
                assert rewritten["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
                assert without_version(rewritten) == without_version(before)
                assert (await stored(etcd, key)).startswith(b"k8s:enc:aescbc:v1:new:")
                assert await ask(client, "PUT", name, rewritten) == rewritten

    asyncio.run(scenario())


def without_version(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}


def initializing(kind: str, key: str, reason: str) -> str:
    return f'storage is (re)initializing: failed to list {kind}: unable to transform key "/registry/{key}": {reason}'


def in_list(key: str, reason: str) -> str:
    return f'Internal error occurred: unable to transform key "/registry/{key}": {reason}'


_UNREADABLE_SECRETS: Final = initializing("*core.Secret", "secrets/default/s1", WRONG_BOX)
REFUSED: Final[list[tuple[str, str, Any, int, str]]] = [
    ("GET", f"{SECRETS}/s1", None, 500, f"Internal error occurred: {WRONG_BOX}"),
    ("GET", f"{SECRETS}/s1?resourceVersion=0", None, 500, f"Internal error occurred: {WRONG_BOX}"),
    ("GET", SECRETS, None, 429, _UNREADABLE_SECRETS),
    ("GET", f"{SECRETS}?limit=5", None, 500, in_list("secrets/default/s1", WRONG_BOX)),
    ("GET", f"{SECRETS}?resourceVersion=0", None, 429, _UNREADABLE_SECRETS),
    ("GET", f"{SECRETS}?fieldSelector=metadata.name%3Ds1", None, 429, _UNREADABLE_SECRETS),
    ("GET", f"{SECRETS}?watch=1&timeoutSeconds=1", None, 429, _UNREADABLE_SECRETS),
    ("GET", "/api/v1/secrets", None, 429, _UNREADABLE_SECRETS),
    ("GET", f"{CONFIG_MAPS}/c1", None, 500, "Internal error occurred: invalid padding on input"),
    ("GET", f"{DEPLOYMENTS}/d1", None, 500, "Internal error occurred: no matching prefix found"),
    (
        "GET",
        DEPLOYMENTS,
        None,
        429,
        initializing("*apps.Deployment", "deployments/default/d1", "no matching prefix found"),
    ),
    ("PUT", f"{SECRETS}/s1", SECRET, 500, f"Internal error occurred: {WRONG_BOX}"),
    ("PATCH", f"{SECRETS}/s1", {"metadata": {"labels": {"a": "b"}}}, 500, f"Internal error occurred: {WRONG_BOX}"),
    ("POST", SECRETS, SECRET, 409, 'secrets "s1" already exists'),
    ("DELETE", f"{SECRETS}/s1", None, 500, f"Internal error occurred: {WRONG_BOX}"),
    ("DELETE", SECRETS, None, 500, in_list("secrets/default/s1", WRONG_BOX)),
]


def test_objects_that_cannot_be_decrypted(etcd: EtcdProcess, file: Path) -> None:
    """The server shows and overwrites none of them, and serves the others."""
    rules: Rules = {
        "secrets": [provider("secretbox", box1=OTHER), IDENTITY],
        "configmaps": [provider("aescbc", cbc1=OTHER), IDENTITY],
        "*.apps": [IDENTITY],
    }

    async def scenario() -> None:
        await put(etcd, STORED)
        async with server(etcd.url, encryption_config=use(file, rules)) as client:
            for method, path, body, code, message in REFUSED:
                headers = MERGE if method == "PATCH" else {}
                response = await client.request(method, path, json=body, headers=headers)
                status = response.json()
                assert (response.status_code, status["message"]) == (code, message), (method, path)
                if code == 500:
                    cause = message.removeprefix("Internal error occurred: ")
                    assert status["details"] == {"causes": [{"message": cause}]}
                if code == 429:
                    assert status["details"]["retryAfterSeconds"] >= 1
            assert (await ask(client, "GET", "/api/v1/namespaces"))["items"]
            await put(etcd, {"/registry/secrets/default/s1": SECRET_DOCUMENT})
            assert await eventually(lambda: ask(client, "GET", SECRETS))
        assert await stored(etcd, "/registry/configmaps/default/c1") == STORED["/registry/configmaps/default/c1"]

    asyncio.run(scenario())


SECRET_DOCUMENT: Final = (
    b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s1","namespace":"default","uid":"u"},"type":"Opaque"}'
)
WIDGETS_OF_EXAMPLE: Final[Object] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {**DEFINITION["spec"], "group": "example.com"},
}


def test_a_changed_file_is_read_again(etcd: EtcdProcess, file: Path) -> None:
    """Then the server shows what it couldn't read."""

    async def scenario() -> None:
        await put(etcd, {key: value for key, value in STORED.items() if "secrets" in key})
        use(file, {"secrets": [provider("secretbox", box1=OTHER)]})
        async with server(etcd.url, encryption_config=file, reloads_encryption=True) as client:
            assert (await client.get(SECRETS)).status_code == 429
            use(file, {"secrets": [provider("aesgcm", new=SHORT), *RULES["secrets"]]})
            obj = await eventually(lambda: ask(client, "GET", f"{SECRETS}/s1"))
            assert (await eventually(lambda: ask(client, "GET", SECRETS)))["items"]
            await ask(client, "PUT", f"{SECRETS}/s1", obj)
        assert (await stored(etcd, "/registry/secrets/default/s1")).startswith(b"k8s:enc:aesgcm:v1:new:")

    asyncio.run(scenario())


def test_a_server_whose_definitions_cannot_be_decrypted_does_not_start(etcd: EtcdProcess, file: Path) -> None:
    async def scenario() -> None:
        async with server(etcd.url, encryption_config=use(file, {"*.*": [GROUPED]})) as client:
            await ask(client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        local = LocalServer(Config(etcd=EtcdOptions(servers=(etcd.url,)), controllers=()), listens=False)
        with pytest.raises(
            OSError, match="identity transformer tried to read encrypted data: --encryption-provider-config"
        ):
            await local.start()
        await local.stop()

    asyncio.run(scenario())


@pytest.mark.skipif(
    not (REFERENCE and REFERENCE_ENCRYPTION),
    reason="FAKEAPISERVER_REFERENCE_STATE and FAKEAPISERVER_REFERENCE_ENCRYPTION name no real API server and its encryption",
)
def test_a_real_server_and_ours_decrypt_what_the_other_one_encrypts() -> None:
    """Both show the same, in the same words."""
    url = reference_etcd()
    config = kubeconfig.load(Path(REFERENCE) / "kubeconfig")
    headers = {"Authorization": f"Bearer {config.token}"}

    async def scenario() -> None:
        async with (
            httpx.AsyncClient(base_url=config.host, verify=False, headers=headers, timeout=30) as real,
            server(url, encryption_config=Path(REFERENCE_ENCRYPTION)) as ours,
        ):
            for writer, reader, name in ((real, ours, "from-real"), (ours, real, "from-ours")):
                path = f"{SECRETS}/{name}"
                await ask(writer, "POST", SECRETS, {**SECRET, "metadata": {"name": name}})
                assert (await stored_at(url, f"/registry/secrets/default/{name}")).startswith(b"k8s:enc:")
                obj = await ask(reader, "GET", path)
                assert obj == await ask(writer, "GET", path)
                changed = await ask(reader, "PUT", path, {**obj, "data": {"a": "eA=="}})
                assert await ask(writer, "GET", path) == changed
            assert await ask(ours, "GET", SECRETS) == await ask(real, "GET", SECRETS)
            for name in ("from-real", "from-ours"):
                await ask(ours, "DELETE", f"{SECRETS}/{name}")

    asyncio.run(scenario())


def test_another_prefix_in_etcd(etcd: EtcdProcess, file: Path) -> None:
    """The key in etcd is what a value is bound to."""

    async def scenario() -> None:
        use(file, {"secrets": [provider("aesgcm", a=SHORT)]})
        async with server(etcd.url, encryption_config=file, prefix="/other") as client:
            await ask(client, "POST", SECRETS, SECRET)
        value = await stored(etcd, "/other/secrets/default/s1")
        assert value.startswith(b"k8s:enc:aesgcm:v1:a:")
        await put(etcd, {"/registry/secrets/default/s1": value})
        async with server(etcd.url, encryption_config=file, prefix="/other") as client:
            assert (await ask(client, "GET", f"{SECRETS}/s1"))["data"] == {"a": "Yg=="}
        async with server(etcd.url, encryption_config=file) as client:
            response = await client.get(f"{SECRETS}/s1")
            assert response.json()["message"] == "Internal error occurred: cipher: message authentication failed"

    asyncio.run(scenario())
