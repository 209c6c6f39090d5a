"""A controller in a few words (upstream: sigs.k8s.io/controller-runtime/pkg/builder/controller.go).

controller_managed_by(manager).for_(WIDGET).owns(DEPLOYMENT).complete(WidgetReconciler())
"""

from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.controller_runtime.controller import Controller, ControllerOptions
from fakeapiserver.controller_runtime.handler import (
    EnqueueRequestForOwner,
    EventHandler,
    enqueue_request_for_object,
)
from fakeapiserver.controller_runtime.manager import Manager
from fakeapiserver.controller_runtime.predicate import Predicate
from fakeapiserver.controller_runtime.reconcile import Reconciler
from fakeapiserver.controller_runtime.scheme import Kind, gvk_for
from fakeapiserver.controller_runtime.source import Kind as KindSource
from fakeapiserver.controller_runtime.source import Source

__all__ = ["Builder", "controller_managed_by"]


class _Watch(Struct, frozen=True):
    kind: GroupVersionKind
    handler: EventHandler
    predicates: Sequence[Predicate]
    metadata_only: bool


class Builder:
    """Builds a controller. Each method returns the builder; `complete` and `build` end it.

    Kinds are types of scheme.kind, or GroupVersionKinds.
    """

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._for: GroupVersionKind | None = None
        self._watches: list[_Watch] = []
        self._owned: list[tuple[GroupVersionKind, Sequence[Predicate], bool, bool]] = []
        self._sources: list[Source] = []
        self._filters: list[Predicate] = []
        self._name = ""
        self._options = manager.options.controller

    def for_(self, kind: Kind, *predicates: Predicate, metadata_only: bool = False) -> Self:
        """The kind that is reconciled: its objects' events make requests for them. ValueError: there is one already."""
        if self._for is not None:
            raise ValueError(
                "For(...) should only be called once, could not assign multiple objects for reconciliation"
            )
        self._for = gvk_for(kind)
        self._watches.append(_Watch(self._for, enqueue_request_for_object, predicates, metadata_only))
        return self

    def owns(
        self, kind: Kind, *predicates: Predicate, match_every_owner: bool = False, metadata_only: bool = False
    ) -> Self:
        """A kind whose objects the reconciled ones control; with `match_every_owner` own is enough."""
        self._owned.append((gvk_for(kind), predicates, match_every_owner, metadata_only))
        return self

    def watches(self, kind: Kind, handler: EventHandler, *predicates: Predicate) -> Self:
        """Watches another kind; `handler` turns its events into requests."""
        self._watches.append(_Watch(gvk_for(kind), handler, predicates, False))
        return self

    def watches_metadata(self, kind: Kind, handler: EventHandler, *predicates: Predicate) -> Self:
        """Does what `watches` does with the objects' metadata only, which is cheaper."""
        self._watches.append(_Watch(gvk_for(kind), handler, predicates, True))
        return self

    def watches_raw_source(self, source: Source) -> Self:
        """Any other source."""
        self._sources.append(source)
        return self

    def with_event_filter(self, predicate: Predicate) -> Self:
        """Drops the events of all watches that the predicate rejects."""
        self._filters.append(predicate)
        return self

    def with_options(self, options: ControllerOptions) -> Self:
        """Instead of those of the manager's options."""
        self._options = options
        return self

    def named(self, name: str) -> Self:
        """In metrics and logs; by default the kind, in lower case."""
        self._name = name
        return self

    def complete(self, reconciler: Reconciler) -> None:
        """The manager runs the controller."""
        self.build(reconciler)

    def build(self, reconciler: Reconciler) -> Controller:
        """Does what `complete` does and returns the controller.

        Raises ValueError if something is missing, or if another of the manager's controllers has the name.
        """
        if not isinstance(reconciler, Reconciler):
            raise ValueError("must provide a non-nil Reconciler")
        name = self._name or (self._for.kind.lower() if self._for else "")
        if not name:
            raise ValueError("one of For() or Named() must be called")
        if self._owned and self._for is None:
            raise ValueError("Owns() can only be used together with For()")
        if not self._watches and not self._sources:
            raise ValueError(
                "there are no watches configured, controller will never get triggered. "
                "Use For(), Owns(), Watches() or WatchesRawSource() to set them up"
            )
        self._manager.name_controller(name, skip_validation=self._options.skip_name_validation)
        about = {"controllerGroup": self._for.group, "controllerKind": self._for.kind} if self._for else {}
        controller = Controller(
            name,
            reconciler,
            metrics=self._manager.metrics,
            options=self._options,
            values=about,
            clock=self._manager.clock,
            observer=self._manager.observer,
        )
        for watch in (*self._watches, *self._owner_watches()):
            predicates = (*self._filters, *watch.predicates)
            controller.add_source(
                KindSource(
                    self._manager.cache, watch.kind, watch.handler, *predicates, metadata_only=watch.metadata_only
                )
            )
        for source in self._sources:
            controller.add_source(source)
        self._manager.add(controller)
        return controller

    def _owner_watches(self) -> Sequence[_Watch]:
        owner = self._for
        if owner is None:
            return ()
        return [
            _Watch(
                kind,
                EnqueueRequestForOwner(owner, not every_owner, mapper=self._manager.mapper),
                predicates,
                metadata_only,
            )
            for kind, predicates, every_owner, metadata_only in self._owned
        ]


def controller_managed_by(manager: Manager) -> Builder:
    """Begins one."""
    return Builder(manager)
