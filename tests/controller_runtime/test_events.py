"""From events to requests: predicates and handlers."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.client.workqueue import WorkQueue
from fakeapiserver.controller_runtime import Request, gvk, predicate
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent
from fakeapiserver.controller_runtime.handler import (
    LOW_PRIORITY,
    EnqueueRequestForOwner,
    EnqueueRequestsFromMapFunc,
    EventHandler,
    enqueue_request_for_object,
)
from fakeapiserver.controller_runtime.predicate import Predicate


def obj(name: str = "a", version: str = "1", **metadata: object) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": version, **metadata}}


def update(old: dict[str, Any], new: dict[str, Any]) -> UpdateEvent:
    return UpdateEvent(obj(version="1", **old), obj(version="2", **new))


OWNER = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "1", "controller": True}
OTHER = {**OWNER, "name": "x", "controller": False}
AGAIN = UpdateEvent(obj(), obj())


@pytest.mark.parametrize(
    ("wants", "event", "expected"),
    [
        (predicate.ResourceVersionChanged, AGAIN, False),
        (predicate.ResourceVersionChanged, update({}, {}), True),
        (predicate.GenerationChanged, update({"generation": 1}, {"generation": 1}), False),
        (predicate.GenerationChanged, update({"generation": 1}, {"generation": 2}), True),
        (predicate.GenerationChanged, CreateEvent(obj()), True),
        (predicate.LabelChanged, update({}, {"labels": {}}), False),
        (predicate.LabelChanged, update({}, {"labels": {"a": "b"}}), True),
        (predicate.AnnotationChanged, update({"annotations": {"a": "b"}}, {}), True),
        (predicate.label_selector("app in (a,b)"), CreateEvent(obj(labels={"app": "b"})), True),
        (predicate.label_selector("app in (a,b)"), DeleteEvent(obj(labels={"app": "c"})), False),
        (predicate.label_selector("app"), update({"labels": {"app": "a"}}, {}), False),
        (predicate.and_(predicate.GenerationChanged, predicate.LabelChanged), update({}, {"generation": 2}), False),
        (predicate.or_(predicate.GenerationChanged, predicate.LabelChanged), update({}, {"generation": 2}), True),
        (predicate.not_(predicate.ResourceVersionChanged), AGAIN, True),
        (predicate.Funcs(delete=lambda event: False), DeleteEvent(obj()), False),
        (predicate.Funcs(generic=lambda event: False), GenericEvent(obj()), False),
        (predicate.Funcs(create=lambda event: not event.is_in_initial_list), CreateEvent(obj(), True), False),
    ],
)
def test_predicates(wants: Predicate, event: Event, expected: bool) -> None:
    assert wants(event) is expected


def neighbours(found: Object) -> Iterable[Request]:
    return [Request("ns", found["metadata"]["name"] + suffix) for suffix in "12"]


@pytest.mark.parametrize(
    ("handler", "event", "expected"),
    [
        (enqueue_request_for_object, CreateEvent(obj()), [(Request("ns", "a"), 0)]),
        (enqueue_request_for_object, CreateEvent(obj(), True), [(Request("ns", "a"), LOW_PRIORITY)]),
        (enqueue_request_for_object, AGAIN, [(Request("ns", "a"), LOW_PRIORITY)]),
        (enqueue_request_for_object, DeleteEvent({"metadata": {"name": "node"}}), [(Request("", "node"), 0)]),
        (
            EnqueueRequestForOwner(gvk("example.com/v2", "Widget")),
            CreateEvent(obj(ownerReferences=[OWNER, OTHER])),
            [(Request("ns", "w"), 0)],
        ),
        (
            EnqueueRequestForOwner(gvk("example.com/v1", "Widget"), only_controller_owner=False, namespaced=False),
            CreateEvent(obj(ownerReferences=[OWNER, OTHER])),
            [(Request("", "w"), 0), (Request("", "x"), 0)],
        ),
        (
            EnqueueRequestForOwner(gvk("example.com/v1", "Widget")),
            update({"ownerReferences": [OWNER]}, {"ownerReferences": [{**OWNER, "name": "new"}]}),
            [(Request("ns", "w"), 0), (Request("ns", "new"), 0)],
        ),
        (EnqueueRequestForOwner(gvk("other.com/v1", "Widget")), CreateEvent(obj(ownerReferences=[OWNER])), []),
        (
            EnqueueRequestsFromMapFunc(neighbours),
            UpdateEvent(obj("a"), obj("a", "2")),
            [(Request("ns", "a1"), 0), (Request("ns", "a2"), 0)],
        ),
    ],
)
def test_handlers(handler: EventHandler, event: Event, expected: list[tuple[Request, int]]) -> None:
    async def scenario() -> None:
        queue = WorkQueue[Request]()
        told = handler(event, queue)
        if told is not None:
            await told
        assert [await queue.get_with_priority() for _ in range(len(queue))] == expected

    asyncio.run(scenario())
