"""Predicates: filters of a controller's events (upstream: sigs.k8s.io/controller-runtime/pkg/predicate)."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent, object_of

__all__ = [
    "AnnotationChanged",
    "Funcs",
    "GenerationChanged",
    "LabelChanged",
    "Predicate",
    "ResourceVersionChanged",
    "and_",
    "label_selector",
    "not_",
    "objects",
    "or_",
]

log = logging.getLogger(__name__)


class Predicate(Protocol):
    """Whether an event counts."""

    def __call__(self, event: Event) -> bool: ...


class Funcs(Struct, frozen=True):
    """A function for each type of event; events without a function pass."""

    create: Callable[[CreateEvent], bool] | None = None
    update: Callable[[UpdateEvent], bool] | None = None
    delete: Callable[[DeleteEvent], bool] | None = None
    generic: Callable[[GenericEvent], bool] | None = None

    def __call__(self, event: Event) -> bool:
        match event:
            case CreateEvent():
                return self.create is None or self.create(event)
            case UpdateEvent():
                return self.update is None or self.update(event)
            case DeleteEvent():
                return self.delete is None or self.delete(event)
            case GenericEvent():
                return self.generic is None or self.generic(event)


def _changes(what: Callable[[Mapping[str, Any]], object]) -> Predicate:
    """Accepts updates that change a part of the metadata, and all other events."""

    def changed(event: UpdateEvent) -> bool:
        if not event.object_old or not event.object_new:
            log.error("update event has no %s object", "new" if event.object_old else "old")
            return False
        return what(event.object_old["metadata"]) != what(event.object_new["metadata"])

    return Funcs(update=changed)


# Something changed: leaves out what is only looked at again.
ResourceVersionChanged: Predicate = _changes(lambda metadata: metadata.get("resourceVersion"))
# The spec changed: leaves out status and metadata, for kinds that have a status of their own.
GenerationChanged: Predicate = _changes(lambda metadata: metadata.get("generation"))
AnnotationChanged: Predicate = _changes(lambda metadata: metadata.get("annotations") or {})
LabelChanged: Predicate = _changes(lambda metadata: metadata.get("labels") or {})


def objects(keeps: Callable[[Object], bool]) -> Predicate:
    """By the object alone; of an update, by the new one (upstream: NewPredicateFuncs)."""

    def wanted(event: Event) -> bool:
        return keeps(object_of(event))

    return wanted


def label_selector(selector: str) -> Predicate:
    """Objects that the selector selects, `app in (a,b)`. ValueError."""
    parsed = labels.parse(selector)
    return objects(lambda obj: parsed.matches(obj["metadata"].get("labels") or {}))


def and_(*predicates: Predicate) -> Predicate:
    """Accepts events that all predicates accept."""
    return lambda event: all(predicate(event) for predicate in predicates)


def or_(*predicates: Predicate) -> Predicate:
    """Accepts events that any predicate accepts."""
    return lambda event: any(predicate(event) for predicate in predicates)


def not_(predicate: Predicate) -> Predicate:
    """Accepts events that the predicate rejects."""
    return lambda event: not predicate(event)
