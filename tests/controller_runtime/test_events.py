"""From events to requests: predicates and handlers."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown
from fakeapiserver.client.workqueue import WorkQueue
from fakeapiserver.controller_runtime import Request, gvk, predicate
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent
from fakeapiserver.controller_runtime.handler import (
    LOW_PRIORITY,
    EnqueueRequestForOwner,
    EnqueueRequestsFromMapFunc,
    EventHandler,
    Funcs,
    Queue,
    enqueue_request_for_object,
)
from fakeapiserver.controller_runtime.predicate import Predicate
from fakeapiserver.controller_runtime.source import _Forwarding


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
        (predicate.GenerationChanged, UpdateEvent({}, obj()), False),
        (predicate.LabelChanged, UpdateEvent(obj(), {}), False),
        (predicate.ResourceVersionChanged, GenericEvent(), True),
        (predicate.and_(), AGAIN, True),
        (predicate.or_(), AGAIN, False),
        (
            predicate.and_(predicate.not_(predicate.ResourceVersionChanged), predicate.or_(predicate.Funcs())),
            AGAIN,
            True,
        ),
        (predicate.not_(predicate.not_(predicate.LabelChanged)), update({}, {"labels": {"a": "b"}}), True),
        (predicate.objects(lambda obj: obj["metadata"]["name"] == "b"), UpdateEvent(obj("a"), obj("b")), True),
        (predicate.Funcs(create=lambda event: not event.is_in_initial_list), CreateEvent(obj(), True), False),
    ],
)
def test_predicates(wants: Predicate, event: Event, expected: bool) -> None:
    assert wants(event) is expected


def test_of_several_predicates_those_are_asked_that_decide() -> None:
    def refuses(event: Event) -> bool:
        raise AssertionError("no test asks")

    never = predicate.objects(lambda obj: False)
    assert not predicate.and_(never, refuses)(AGAIN)
    assert predicate.or_(predicate.not_(never), refuses)(AGAIN)


def neighbours(found: Object) -> Iterable[Request]:
    return [Request("ns", found["metadata"]["name"] + suffix) for suffix in "12"]


def adds(event: Event, queue: Queue) -> None:
    queue.add(Request("ns", "a"))


def adds_urgently(event: Event, queue: Queue) -> None:
    queue.add(Request("ns", "a"), 7)


async def adds_later(event: Event, queue: Queue) -> None:
    await asyncio.sleep(0)
    queue.add(Request("ns", "a"))


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
        (enqueue_request_for_object, UpdateEvent(obj("old"), {}), [(Request("ns", "old"), 0)]),
        (enqueue_request_for_object, GenericEvent(), []),
        (enqueue_request_for_object, GenericEvent(obj()), [(Request("ns", "a"), 0)]),
        (
            EnqueueRequestForOwner(gvk("example.com/v1", "Widget")),
            UpdateEvent({}, obj(ownerReferences=[OWNER])),
            [(Request("ns", "w"), 0)],
        ),
        (
            EnqueueRequestForOwner(gvk("v1", "Pod")),
            CreateEvent(obj(ownerReferences=[{**OWNER, "apiVersion": "a/b/c"}])),
            [],
        ),
        (Funcs(), CreateEvent(obj()), []),
        (Funcs(create=adds), CreateEvent(obj(), True), [(Request("ns", "a"), LOW_PRIORITY)]),
        (Funcs(create=adds), CreateEvent(obj()), [(Request("ns", "a"), 0)]),
        (Funcs(update=adds_urgently), AGAIN, [(Request("ns", "a"), 7)]),
        (Funcs(delete=adds_later), DeleteEvent(obj(), delete_state_unknown=True), [(Request("ns", "a"), 0)]),
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


class Told:
    """A handler's memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event, queue: Queue) -> None:
        self.events.append(event)


def test_events_of_an_informer_pass_through_predicates() -> None:
    told = Told()
    forwarding = _Forwarding(told, [predicate.ResourceVersionChanged], WorkQueue[Request]())
    forwarding.on_add(obj("a"), True)
    forwarding.on_update(obj("a"), obj("a"))  # looked at again
    forwarding.on_update(obj("a"), obj("a", "2"))
    forwarding.on_delete(obj("a", "3"))
    forwarding.on_delete(DeletedFinalStateUnknown("ns/b", obj("b")))
    assert told.events == [
        CreateEvent(obj("a"), is_in_initial_list=True),
        UpdateEvent(obj("a"), obj("a", "2")),
        DeleteEvent(obj("a", "3")),
        DeleteEvent(obj("b"), delete_state_unknown=True),
    ]
