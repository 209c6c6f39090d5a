"""Other people's Python clients, unmodified, doing what their own documentation shows."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from fakeapiserver import Cluster

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def test_kubernetes(fake_cluster: Cluster) -> None:
    kubernetes = pytest.importorskip("kubernetes", reason="pip install -e '.[clients]'")
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(fake_cluster.kubeconfig))
    body = kubernetes.client.V1ConfigMap(metadata={"name": "a", "labels": {"x": "y"}}, data={"k": "v"})
    created = api.create_namespaced_config_map("default", body)
    assert api.read_namespaced_config_map("a", "default").metadata.uid == created.metadata.uid
    assert [item.metadata.name for item in api.list_namespaced_config_map("default", label_selector="x=y").items] == [
        "a"
    ]
    api.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}})
    events = kubernetes.watch.Watch().stream(
        api.list_namespaced_config_map, "default", resource_version=created.metadata.resource_version, timeout_seconds=1
    )
    assert [(event["type"], event["object"].data) for event in events] == [("MODIFIED", {"k": "w"})]
    with pytest.raises(kubernetes.client.ApiException) as refused:
        api.create_namespaced_config_map("default", body)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    api.delete_namespaced_config_map("a", "default")


def test_kubernetes_dynamic_client_applies(fake_cluster: Cluster) -> None:
    kubernetes = pytest.importorskip("kubernetes", reason="pip install -e '.[clients]'")
    from kubernetes import dynamic

    client = dynamic.DynamicClient(kubernetes.config.new_client_from_config(fake_cluster.kubeconfig))
    deployments = client.resources.get(api_version="apps/v1", kind="Deployment")
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    applied = deployments.server_side_apply(namespace="default", body=body, field_manager="me")
    assert [entry["manager"] for entry in applied.metadata.managedFields] == ["me"]
    assert applied.spec.template.spec.restartPolicy == "Always"


def test_kubernetes_asyncio(fake_cluster: Cluster) -> None:
    pytest.importorskip("kubernetes_asyncio", reason="pip install -e '.[clients]'")
    from kubernetes_asyncio import client, config, watch

    async def scenario() -> list[tuple[str, str]]:
        async with await config.new_client_from_config(fake_cluster.kubeconfig) as api_client:
            api = client.CoreV1Api(api_client)
            await api.create_namespace({"metadata": {"name": "shop"}})
            await api.create_namespaced_secret("shop", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
            seen = []
            async with watch.Watch().stream(api.list_namespaced_secret, "shop", timeout_seconds=1) as stream:
                async for event in stream:
                    seen.append((event["type"], event["object"].data["a"]))
            return seen

    assert asyncio.run(scenario()) == [("ADDED", "Yg==")]


def test_lightkube(fake_cluster: Cluster) -> None:
    pytest.importorskip("lightkube.core", reason="pip install -e '.[clients]'")
    lightkube = pytest.importorskip("lightkube")
    from lightkube.core.exceptions import ApiError
    from lightkube.models.core_v1 import ServicePort, ServiceSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import Service

    client = lightkube.Client(lightkube.KubeConfig.from_file(fake_cluster.kubeconfig), field_manager="me")
    spec = ServiceSpec(selector={"a": "b"}, ports=[ServicePort(port=80)])
    service = client.create(Service(metadata=ObjectMeta(name="web", namespace="default"), spec=spec))
    assert service.spec.clusterIP.startswith("10.0.0.")
    client.patch(Service, "web", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
    applied = Service(
        apiVersion="v1", kind="Service", metadata=ObjectMeta(name="web", namespace="default", annotations={"n": "1"})
    )
    assert client.apply(applied).metadata.annotations == {"n": "1"}
    assert [item.metadata.name for item in client.list(Service, namespace="default", labels={"x": "y"})] == ["web"]
    client.delete(Service, "web", namespace="default")
    with pytest.raises(ApiError, match='services "web" not found'):
        client.get(Service, "web", namespace="default")


def test_kr8s(fake_cluster: Cluster) -> None:
    kr8s = pytest.importorskip("kr8s", reason="pip install -e '.[clients]'")
    from kr8s.objects import ConfigMap, Deployment

    api = kr8s.api(kubeconfig=fake_cluster.kubeconfig)
    ConfigMap({"metadata": {"name": "a"}, "data": {"k": "v"}}, api=api).create()
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    deployment = Deployment({"metadata": {"name": "web"}, "spec": spec}, api=api)
    deployment.create()
    deployment.patch({"spec": {"replicas": 3}})
    assert deployment.replicas == 3
    config = ConfigMap.get("a", namespace="default", api=api)
    config.label({"x": "y"})
    assert [found.name for found in api.get("configmaps", namespace="default", label_selector="x=y")] == ["a"]
    config.delete()
    assert not config.exists()


def test_kopf_operator_reconciles_a_custom_resource(fake_cluster: Cluster) -> None:
    """A kopf operator writes the status of a new Widget, and removes its finalizer when the Widget is deleted."""
    kopf = pytest.importorskip("kopf", reason="pip install -e '.[clients]'")
    kubernetes = pytest.importorskip("kubernetes", reason="pip install -e '.[clients]'")
    api_client = kubernetes.config.new_client_from_config(fake_cluster.kubeconfig)
    kubernetes.client.ApiextensionsV1Api(api_client).create_custom_resource_definition(WIDGETS)
    widgets = kubernetes.client.CustomObjectsApi(api_client)
    registry = kopf.OperatorRegistry()
    deleted: list[str] = []

    @kopf.on.create("example.com", "v1", "widgets", registry=registry)
    def created(spec: Any, patch: Any, **_: Any) -> None:
        patch.status["doubled"] = spec["size"] * 2

    @kopf.on.delete("example.com", "v1", "widgets", registry=registry)
    def gone(name: str, **_: Any) -> None:
        deleted.append(name)

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    stop, ready = threading.Event(), threading.Event()
    thread = threading.Thread(target=_run_operator, args=(kopf, registry, stop, ready))
    thread.start()
    try:
        assert ready.wait(60)
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 21}}
        widgets.create_namespaced_custom_object("example.com", "v1", "default", "widgets", body)
        place = ("example.com", "v1", "default", "widgets", "w")
        eventually(lambda: widgets.get_namespaced_custom_object(*place).get("status", {}).get("doubled") == 42)
        widgets.delete_namespaced_custom_object(*place)
        eventually(lambda: deleted == ["w"])
        eventually(lambda: not widgets.list_namespaced_custom_object(*place[:4])["items"])
    finally:
        stop.set()
        thread.join(60)


def _run_operator(kopf: Any, registry: Any, stop: threading.Event, ready: threading.Event) -> None:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    operator = kopf.operator(
        registry=registry, settings=settings, stop_flag=stop, ready_flag=ready, namespaces=["default"], standalone=True
    )
    asyncio.run(operator)


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """An operator works in its own time: asks again until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
