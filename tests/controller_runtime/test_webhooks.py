"""Webhooks of the runtime, asked by a server: defaults, refusals, warnings and conversions."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.errors import StatusError, is_forbidden
from fakeapiserver.controller_runtime import Client, Manager, ManagerOptions, gvk
from fakeapiserver.controller_runtime.webhook.admission import (
    CustomDefaulter,
    DefaulterHandler,
    HandlerFunc,
    Request,
    Response,
    ValidatorHandler,
    Webhook,
    allowed,
    denied,
    errored,
    patched,
)
from fakeapiserver.controller_runtime.webhook.conversion import ConversionWebhook, Spokes
from fakeapiserver.controller_runtime.webhook.server import WebhookServer

WIDGET = gvk("example.com/v1", "Widget")
OLD_WIDGET = gvk("example.com/v1beta1", "Widget")
Object = dict[str, Any]


def configuration(sort: str, path: str) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{sort}WebhookConfiguration",
        "metadata": {"name": f"{sort.lower()}-widgets"},
        "webhooks": [
            {
                "name": "widgets.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"service": {"name": "webhook", "namespace": "system", "path": path}},
                "rules": [
                    {
                        "apiGroups": ["example.com"],
                        "apiVersions": ["v1"],
                        "resources": ["widgets"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                    }
                ],
            }
        ],
    }


def version(name: str, *, storage: bool) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [version("v1", storage=True), version("v1beta1", storage=False)],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "webhook", "namespace": "system", "path": "/convert"}},
            },
        },
    },
}


def widget(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


class Widgets(CustomDefaulter):
    """Three parts by default, at most ten; never fewer than before; not deleted while they are kept."""

    async def default(self, obj: Object, request: Request) -> None:
        obj["spec"].setdefault("parts", 3)
        obj["metadata"].setdefault("labels", {})["by/user"] = request.user_info["username"].replace(":", "-")

    async def validate_create(self, obj: Object) -> Sequence[str] | None:
        if obj["spec"]["parts"] > 10:
            raise ValueError("spec.parts: at most 10")
        return ["many parts"] if obj["spec"]["parts"] > 5 else None

    async def validate_update(self, old: Object, new: Object) -> Sequence[str] | None:
        if new["spec"]["parts"] < old["spec"]["parts"]:
            raise StatusError({"code": 422, "reason": "Invalid", "message": "spec.parts: may not shrink"})
        return None

    async def validate_delete(self, obj: Object) -> Sequence[str] | None:
        if obj["spec"].get("kept"):
            raise ValueError("it is kept")
        return None


def spokes() -> ConversionWebhook:
    """v1beta1 calls the parts pieces."""

    def renamed(old: str, new: str) -> Callable[[Object], Object]:
        return lambda obj: {**obj, "spec": {new if key == old else key: value for key, value in obj["spec"].items()}}

    kinds = Spokes("v1")
    kinds.add("v1beta1", to_hub=renamed("pieces", "parts"), from_hub=renamed("parts", "pieces"))
    webhook = ConversionWebhook()
    webhook.register(GroupKind("example.com", "Widget"), kinds)
    return webhook


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """Creates the files that a project has in config/."""
    for name, obj in (
        ("mutating", configuration("Mutating", "/mutate")),
        ("validating", configuration("Validating", "/validate")),
        ("definition", DEFINITION),
    ):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(obj))
    return tmp_path


@asynccontextmanager
async def served(folder: Path, register: Callable[[WebhookServer], None]) -> AsyncIterator[Client]:
    """A client of a cluster whose webhooks lead to a manager's server."""
    async with Cluster(crds=str(folder), webhooks=str(folder)) as cluster:
        local = cluster.webhooks
        server = WebhookServer(host=local.host, port=local.port, cert_dir=local.cert_dir)
        register(server)
        manager = Manager(kubeconfig.load(cluster.kubeconfig), ManagerOptions(webhook_server=server))
        running = asyncio.ensure_future(manager.run())
        await manager.elected.wait()
        try:
            yield Client(manager.dynamic, manager.mapper)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def run(folder: Path, register: Callable[[WebhookServer], None], work: Callable[[Client], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with served(folder, register) as client:
            await work(client)

    asyncio.run(scenario())


def register_widgets(server: WebhookServer) -> None:
    server.register("/mutate", Webhook(DefaulterHandler(Widgets())))
    server.register("/validate", Webhook(ValidatorHandler(Widgets())))
    server.register("/convert", spokes())


def test_defaults_and_refusals(manifests: Path) -> None:
    async def work(client: Client) -> None:
        made = await client.create(widget("a"))
        assert made["spec"] == {"parts": 3}
        assert made["metadata"]["labels"] == {"by/user": "kubernetes-admin"}
        with pytest.raises(
            StatusError, match=r'"widgets\.example\.com" denied the request: spec\.parts: at most 10'
        ) as caught:
            await client.create(widget("b", parts=11))
        assert is_forbidden(caught.value)
        with pytest.raises(StatusError, match="may not shrink") as caught:
            await client.patch(made, {"spec": {"parts": 2}})
        assert caught.value.code == 422
        kept = await client.patch(made, {"spec": {"kept": True}})
        with pytest.raises(StatusError, match="denied the request: it is kept"):
            await client.delete(kept)

    run(manifests, register_widgets, work)


def test_versions_are_converted(manifests: Path) -> None:
    async def work(client: Client) -> None:
        await client.create(widget("a", parts=4))
        old = await client.get(OLD_WIDGET, "a", "default")
        assert old["spec"] == {"pieces": 4}
        await client.patch(old, {"spec": {"pieces": 5}})
        assert (await client.get(WIDGET, "a", "default"))["spec"] == {"parts": 5}

    run(manifests, register_widgets, work)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (allowed(), None),
        (patched("", {"op": "add", "path": "/spec/x", "value": 1}), None),
        (denied("because"), "denied the request: because"),
        (errored(400, ValueError("can't read it")), "denied the request: can't read it"),
    ],
)
def test_responses(manifests: Path, response: Response, message: str | None) -> None:
    async def decide(request: Request) -> Response:
        return response

    def register(server: WebhookServer) -> None:
        server.register("/mutate", Webhook(HandlerFunc(decide)))
        server.register("/validate", Webhook(ValidatorHandler(Widgets())))
        server.register("/convert", spokes())

    async def work(client: Client) -> None:
        if message is None:
            made = await client.create(widget("a", parts=1))
            assert ("x" in made["spec"]) is bool(response.patches)
        else:
            with pytest.raises(StatusError, match=message):
                await client.create(widget("a", parts=1))

    run(manifests, register, work)


def test_a_handler_that_breaks_is_an_internal_error(manifests: Path) -> None:
    async def decide(request: Request) -> Response:
        raise KeyError("oops")

    async def work(client: Client) -> None:
        with pytest.raises(StatusError, match="denied the request: panic: 'oops'"):
            await client.create(widget("a"))

    run(manifests, lambda server: server.register("/mutate", Webhook(HandlerFunc(decide))), work)


def test_without_a_certificate_the_manager_does_not_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = WebhookServer(port=0, cert_dir=tmp_path)
        with pytest.raises(OSError, match=r"put tls\.crt and tls\.key into"):
            await server.run()

    asyncio.run(scenario())
