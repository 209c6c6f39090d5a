"""Custom resources whose versions a webhook converts: tests what recorded exchanges (area `conversion`) can't show, since it depends on
time, on streams or on the requests to the webhook.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.exchange import Client
from conformance.players.webhook import Webhook
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.registry.apiextensions.conversion import ConvertedStorage, Converter
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.generic.canonical import encode_custom
from fakeapiserver.registry.generic.interfaces import NotConverted
from fakeapiserver.storage.interface import Index
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.transport.webhook import Endpoint, WebhookError

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

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


def test_a_watch_ends_before_an_object_that_can_not_be_converted(ask: Ask, webhook: Webhook) -> None:
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

        return await converter.settled(step, 0)

    assert asyncio.run(scenario())["apiVersion"] == "example.com/v2"
    assert steps == [0, 1, 2, 3]
    assert reviews == ["example.com/v2", "example.com/v3", "example.com/v2"]


def test_stored_objects_that_cannot_be_converted_keep_the_cache_of_a_new_definition_from_being_filled(
    ask: Ask, webhook: Webhook
) -> None:
    ask("POST", WIDGETS.format("v1"), widget("a", "v1", 3))
    webhook.fault = "failed"
    path, merge = f"{DEFINITIONS}/widgets.example.com", "application/merge-patch+json"
    assert ask("PATCH", path, {"spec": {"names": {"shortNames": ["w"]}}}, type=merge)["status"] == 200
    asked = {
        query: ask(method, WIDGETS.format("v2") + query)
        for method, query in (
            ("GET", ""),
            ("GET", "?labelSelector=a&limit=1"),
            ("GET", "?watch=1&timeoutSeconds=1"),
            ("GET", "?limit=1"),
            ("GET", "/a"),
            ("DELETE", "?dryRun=All"),
        )
    }
    assert {query: answer["status"] for query, answer in asked.items()} == {
        "": 429,
        "?labelSelector=a&limit=1": 429,
        "?watch=1&timeoutSeconds=1": 429,
        "?limit=1": 500,
        "/a": 500,
        "?dryRun=All": 500,
    }
    why = asked["/a"]["body"]["message"].partition("AdditionalErrorMsg: ")[2]
    assert why.endswith("conversion is not to be had")
    assert asked[""]["body"]["message"] == (
        "storage is (re)initializing: failed to list <unspecified>: failed to read one or more widgets.example.com from the storage: "
        "StorageError: corrupt object, Code: 7, Key: /registry/example.com/widgets/default/a, ResourceVersion: 0, "
        f"AdditionalErrorMsg: {why}"
    )
    assert asked[""]["body"]["details"] == {"retryAfterSeconds": 1}
    webhook.fault = ""
    assert ask("GET", WIDGETS.format("v2"))["status"] == 200


class SteppedClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    monotonic = now


@pytest.mark.parametrize(("seconds", "code"), [(0, None), (30, None), (31, 429), (60, 429)])
def test_a_cache_tries_for_half_a_minute_to_take_an_event_in(seconds: float, code: int | None) -> None:
    clock, memory = SteppedClock(), MemoryStorage()
    kinds = {
        version: CustomKind(GroupVersionKind("example.com", version, "Widget"), CustomSchema({"type": "object"}), {})
        for version in SIZES
    }

    async def down(endpoint: Endpoint, body: bytes, timeout: int) -> bytes:
        raise WebhookError("connection refused")

    async def scenario() -> NotConverted:
        view = ConvertedStorage(
            inner=memory,
            gvk=kinds["v2"].gvk,
            stored=kinds["v1"].gvk,
            kinds=kinds,
            converter=Converter(Endpoint("https://webhook.example/", "webhook.example", 443), ["v1"], down),
            outdated_before=0,
            running=set(),
            clock=clock,
            since=memory.revision,
            resource=GroupResource("example.com", "widgets"),
        )
        stored = encode_custom(widget("a", "v1", 3))
        await memory.create("/w/a", stored.value, stored.offset, Index(version="v1"))
        with pytest.raises(NotConverted):
            await view.list("/w/")
        clock.seconds += seconds
        with pytest.raises(NotConverted) as caught:
            await view.list("/w/")
        return caught.value

    unready = asyncio.run(scenario()).unready
    assert (unready.code if unready else None) == code
