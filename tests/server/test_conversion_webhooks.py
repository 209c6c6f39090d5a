"""Custom resources whose versions a webhook converts: what can't be shown by recorded exchanges (area `conversion`), since it is a
matter of time, of streams or of what the webhook is asked."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.exchange import Client
from conformance.webhook import Webhook
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.registry.apiextensions.conversion import Converter
from fakeapiserver.transport.webhook import Endpoint

Json = dict[str, Any]
Ask = Callable[..., Json]
WIDGETS = "/apis/example.com/{}/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZES = {"v1": "integer", "v2": "string"}


def definition(webhook: Webhook, *, storage: str = "v1") -> Json:
    def schema(size: str) -> Json:
        spec = {"type": "object", "properties": {"size": {"type": size}}}
        return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}

    versions = [
        {"name": name, "served": True, "storage": name == storage, "schema": schema(size)}
        for name, size in SIZES.items()
    ]
    client = {"url": webhook.url, "caBundle": webhook.ca_bundle}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
            },
        },
    }


def widget(name: str, version: str, size: object) -> Json:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as started:
        yield started


@pytest.fixture
def ask(fake_cluster: Cluster, webhook: Webhook) -> Ask:
    client = Client(fake_cluster.url, fake_cluster.token)

    def send(method: str, path: str, body: Any = None, **more: Any) -> Json:
        return client.send({"method": method, "path": path, **({} if body is None else {"body": body}), **more}, [])

    assert send("POST", DEFINITIONS, definition(webhook))["status"] == 201
    return send


def test_a_version_that_was_converted_is_listed_without_asking_again(ask: Ask, webhook: Webhook) -> None:
    ask("POST", WIDGETS.format("v1"), widget("a", "v1", 3))
    first = ask("GET", WIDGETS.format("v2"))["body"]
    webhook.fault = "failed"
    assert ask("GET", WIDGETS.format("v2"))["body"]["items"] == first["items"]
    assert first["items"][0]["spec"] == {"size": "3"}
    assert ask("GET", WIDGETS.format("v2") + "/a")["status"] == 500  # a single object is always asked for


def test_a_list_with_an_object_that_can_not_be_converted_fails_as_a_whole(ask: Ask, webhook: Webhook) -> None:
    webhook.fault = "failed"
    ask("POST", WIDGETS.format("v1"), widget("a", "v1", 3))
    answer = ask("GET", WIDGETS.format("v2"))
    assert answer["status"] == 500
    assert answer["body"]["message"].endswith("Kind=Widget failed: conversion is not to be had")
    assert ask("GET", WIDGETS.format("v1"))["body"]["items"][0]["spec"] == {"size": 3}


def test_a_watch_that_can_not_begin_says_that_it_has_come_no_further(ask: Ask, webhook: Webhook) -> None:
    webhook.fault = "failed"
    made = ask("POST", WIDGETS.format("v1"), widget("a", "v1", 3))["body"]
    event = ask("GET", WIDGETS.format("v2") + "?watch=1&timeoutSeconds=5")["body"]
    revision = int(made["metadata"]["resourceVersion"])
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 504
    assert event["object"]["message"].endswith(f"Too large resource version: {revision}, current: {revision - 1}")


def test_a_watch_ends_in_front_of_what_can_not_be_converted(ask: Ask, webhook: Webhook) -> None:
    start = ask("GET", WIDGETS.format("v2"))["body"]["metadata"]["resourceVersion"]
    ask("POST", WIDGETS.format("v1"), widget("b", "v1", 4))
    ask("GET", WIDGETS.format("v2"))
    webhook.fault = "failed"
    ask("POST", WIDGETS.format("v1"), widget("c", "v1", 5))
    ask("POST", WIDGETS.format("v1"), widget("d", "v1", 5))
    answer = ask("GET", WIDGETS.format("v2") + f"?watch=1&timeoutSeconds=60&resourceVersion={start}")
    assert answer["body"]["type"] == "ADDED"
    assert answer["body"]["object"]["spec"] == {"size": "4"}


def test_an_unchanged_write_moves_an_object_to_the_version_that_is_stored_now(ask: Ask, webhook: Webhook) -> None:
    made = ask("POST", WIDGETS.format("v1"), widget("a", "v1", 3))["body"]
    newer = definition(webhook, storage="v2")
    merge = "application/merge-patch+json"
    ask("PATCH", f"{DEFINITIONS}/widgets.example.com", {"spec": newer["spec"]}, type=merge)
    moved = ask("PATCH", WIDGETS.format("v2") + "/a", {}, type=merge)["body"]
    again = ask("PATCH", WIDGETS.format("v2") + "/a", {}, type=merge)["body"]
    revisions = [obj["metadata"]["resourceVersion"] for obj in (made, moved, again)]
    assert int(revisions[1]) > int(revisions[0])
    assert revisions[2] == revisions[1]


def test_instances_go_with_their_definition_whatever_the_webhook_says(ask: Ask, webhook: Webhook) -> None:
    ask("POST", WIDGETS.format("v2"), widget("a", "v2", "3"))
    newer = definition(webhook, storage="v2")
    ask(
        "PATCH",
        f"{DEFINITIONS}/widgets.example.com",
        {"spec": newer["spec"]},
        type="application/merge-patch+json",
    )
    webhook.fault = "failed"
    ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert ask("GET", f"{DEFINITIONS}/widgets.example.com")["status"] == 404


def test_many_watchers_of_a_version_ask_once(ask: Ask, webhook: Webhook, fake_cluster: Cluster) -> None:
    for i in range(5):
        ask("POST", WIDGETS.format("v1"), widget(f"w{i}", "v1", i))
    ask("GET", WIDGETS.format("v2"))
    asked = webhook.calls
    for _ in range(3):
        ask("GET", WIDGETS.format("v2") + "?watch=1&timeoutSeconds=1")
    assert webhook.calls == asked == 5


def test_a_webhook_may_live_in_the_servers_own_event_loop() -> None:
    """Synchronous code that needs a conversion is started over: the loop goes on meanwhile."""
    steps, reviews = [], []

    async def post(endpoint: Endpoint, body: bytes, timeout: int) -> bytes:
        review = json.loads(body)
        reviews.append(review["request"]["desiredAPIVersion"])
        await asyncio.sleep(0)
        converted = [{**obj, "apiVersion": reviews[-1]} for obj in review["request"]["objects"]]
        response = {"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        return json.dumps({**review, "response": response}).encode()

    async def scenario() -> Json:
        converter = Converter(Endpoint("https://webhook.example/", "webhook.example", 443), ["v1"], post)

        def step() -> Json:
            steps.append(len(steps))
            obj = widget("a", "v1", 3)
            for version in ("v2", "v3", "v2"):
                obj = converter.at_once(obj, GroupVersionKind("example.com", version, "Widget"))
            return obj

        return await converter.settled(step)

    assert asyncio.run(scenario())["apiVersion"] == "example.com/v2"
    assert steps == [0, 1, 2, 3]
    assert reviews == ["example.com/v2", "example.com/v3", "example.com/v2"]
