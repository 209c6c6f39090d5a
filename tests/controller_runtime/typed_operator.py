"""An operator as its author's type checker sees it: each line that ends with a comment `is …` or `refused: …` says what it must find."""

from collections.abc import Sequence
from typing import Any, reveal_type

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import (
    Builder,
    Client,
    Controller,
    ControllerOptions,
    Manager,
    ManagerOptions,
    Reconciler,
    ReconcilerFunc,
    Request,
    Result,
    controller_managed_by,
    gvk,
    kind,
)
from fakeapiserver.controller_runtime import handler as handlers
from fakeapiserver.controller_runtime import predicate as predicates
from fakeapiserver.controller_runtime.controllerutil import OperationResult, create_or_update
from fakeapiserver.controller_runtime.event import CreateEvent, Event
from fakeapiserver.controller_runtime.markers import resource
from fakeapiserver.controller_runtime.models import CustomResource, Model
from fakeapiserver.controller_runtime.webhook.admission import CustomValidator, ValidatorHandler

POD = gvk("v1", "Pod")


class WidgetSpec(Model):
    """The desired state of a Widget."""

    size: int = 1


@resource("example.com/v1", "Widget")
class Widget(CustomResource):
    """A typed kind."""

    spec: WidgetSpec


@kind("example.com/v1", "Gadget")
class Gadget:
    """A kind of another sort of class."""

    metadata: dict[str, Any]


class WidgetReconciler:
    """A Reconciler without its being named one."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> Result | None:
        widget = await self.client.find(Widget, request.name, request.namespace)
        reveal_type(widget)  # is Widget | None
        if widget is None:
            return None
        reveal_type(widget.spec.size)  # is int
        reveal_type(await self.client.update_status(widget))  # is Widget
        reveal_type(await self.client.list(Widget, labels={"a": "b"}))  # is Sequence[Widget]
        reveal_type(await self.client.get(Gadget, "a"))  # is Gadget
        reveal_type(await self.client.get(POD, "a"))  # is dict[str, Any]
        reveal_type(await create_or_update(self.client, {}, None))  # is tuple[dict[str, Any], OperationResult]
        widget.spec.size = "large"  # refused: assignment
        await self.client.get(Widget, 7)  # refused: call-overload
        return Result(requeue_after=1.5)


class Wrong:
    """Its reconcile takes and answers something else."""

    async def reconcile(self, name: str) -> str:
        return name


class WidgetValidator:
    """A CustomValidator without its being named one."""

    async def validate_create(self, obj: dict[str, Any]) -> Sequence[str] | None:
        return None

    async def validate_update(self, old: dict[str, Any], new: dict[str, Any]) -> Sequence[str] | None:
        return ["a warning"]

    async def validate_delete(self, obj: dict[str, Any]) -> Sequence[str] | None:
        return None


def neighbours(obj: dict[str, Any]) -> Sequence[Request]:
    return [Request("ns", obj["metadata"]["name"])]


def only_created(event: Event) -> bool:
    return isinstance(event, CreateEvent)


async def look(request: Request) -> Result | None:
    reveal_type(request.name)  # is str
    return None


def build() -> None:
    manager = Manager(kubeconfig.load(), ManagerOptions(leader_election=True, leader_election_id="widgets"))
    reveal_type(manager.client)  # is Client
    reveal_type(manager.webhook_server.port)  # is int
    builder = controller_managed_by(manager)
    reveal_type(builder.for_(Widget).owns(POD).named("x"))  # is Builder
    builder.watches(POD, handlers.EnqueueRequestsFromMapFunc(neighbours), predicates.not_(only_created))
    builder.with_event_filter(predicates.and_(predicates.GenerationChanged, only_created))
    builder.with_options(ControllerOptions(max_concurrent_reconciles="4"))  # refused: arg-type
    builder.complete(WidgetReconciler(manager.client))
    builder.complete(ReconcilerFunc(look))
    builder.complete(Wrong())  # refused: arg-type
    builder.complete(look)  # refused: arg-type
    reveal_type(builder.build(WidgetReconciler(manager.client)))  # is Controller
    manager.add(Wrong())  # refused: arg-type
    reveal_type(gvk("v1", "Pod").kind)  # is str


reconciler: type[Reconciler] = WidgetReconciler
validator: CustomValidator = WidgetValidator()
checked: tuple[type[Builder], type[Controller], type[GroupVersionKind]] = (Builder, Controller, GroupVersionKind)
result: str = OperationResult.CREATED
ValidatorHandler(WidgetValidator())
