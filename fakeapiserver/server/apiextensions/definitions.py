"""Follows CustomResourceDefinitions: accepts their names, establishes and serves them, and withdraws what was deleted.

Upstream: k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,apiapproval}.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object, finalizers, is_terminating, metadata
from fakeapiserver.effort import kept_in_loop, offloaded
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.apiextensions import accepted_names
from fakeapiserver.registry.apiextensions.api_approval import approval, is_protected
from fakeapiserver.registry.apiextensions.customresourcedefinition import FINALIZER, condition, set_condition
from fakeapiserver.registry.apiextensions.webhook_conversion import bundle_problem
from fakeapiserver.server.apiextensions.finalizer import Finalizer
from fakeapiserver.server.apiextensions.names import accepted_in_use
from fakeapiserver.server.apiextensions.serving import ServedResources
from fakeapiserver.server.apiextensions.status import DefinitionStatus
from fakeapiserver.server.upkeep.autoregister import AutoRegistration
from fakeapiserver.storage.interface import Event

if TYPE_CHECKING:
    from fakeapiserver.transport.webhook import WebhookConnections


log = logging.getLogger(__name__)

# Bytes of definitions that are established before the next request is looked at.
_USUAL: Final = 512 * 1024


class CustomResources:
    """Works on the definitions' own watch, so a definition is served in the turn of the event loop after its write."""

    def __init__(self, scopes: RequestScopes, connections: "WebhookConnections") -> None:
        """`connections`: those to conversion webhooks, for the next call."""
        self.registration = AutoRegistration(scopes)
        self.served = ServedResources(scopes, connections)
        self._status = DefinitionStatus(scopes, self.served.publish)
        self._finalizer = Finalizer(self.served, self._status)
        self._only_reads = scopes.is_read_only
        # Accepted names by definition.
        self._names: dict[str, accepted_names.Names] = {}
        # Those that didn't get all names they want.
        self._waiting: set[str] = set()
        # The revision by which a definition was last brought in order.
        self._done: dict[str, int] = {}

    async def run(self) -> None:
        """Runs until cancelled. A watch that ends (a restored state) is followed by a new list."""
        definitions = self._status.store
        while True:
            watcher = definitions.storage.watch(definitions.prefix, revision=None, predicate=None)
            await self.sync()
            try:
                while (events := await watcher.next_batch(3600.0)) is not None:
                    for event in events:
                        await self._handle(event)
            finally:
                watcher.close()
                self.served.cancel_conversions()
            await asyncio.sleep(0)  # a closed storage ends each watch at once

    async def sync(self) -> None:
        """Serves what the stored definitions say, and nothing else."""
        definitions = self._status.store
        items = {
            item.key.removeprefix(definitions.prefix): item
            for item in (await definitions.storage.list(definitions.prefix)).items
        }
        for name in self.served.definitions - items.keys():
            await self._withdraw(name)
        self._names = {name: accepted_in_use(item.value) for name, item in items.items()}
        self._waiting &= items.keys()
        for name, item in items.items():
            if self._done.get(name) == item.mod_revision:
                await self.registration.announce_again(name)
            else:
                await self._follow(item.value)

    async def _handle(self, event: Event) -> None:
        definitions = self._status.store
        name = event.object.key.removeprefix(definitions.prefix)
        if event.type == "DELETED":
            await self._withdraw(name)
        elif event.object.mod_revision > self._done.get(name, 0):  # none of the status that was written here
            await self._follow(event.object.value)

    async def _follow(self, value: bytes) -> None:
        """Serves a stored definition. One that was changed or deleted in the meantime is left to its event."""
        with kept_in_loop(_USUAL):
            obj = await offloaded(partial(self._status.store.decode, value), len(value))
            try:
                await self._serve(obj)
            except StatusError as error:
                log.info("definition %s has moved on: %s", metadata(obj)["name"], error)

    async def _serve(self, obj: Object) -> None:
        if self._only_reads:
            self.served.publish(obj)
            return
        if is_terminating(obj):
            self.served.publish(obj)
            if FINALIZER in finalizers(obj):
                await self._finalizer.finalize(obj)
            return
        obj = await self._accept(obj)
        obj = await self._establish(obj)
        obj = await self._judge(obj)
        self.served.publish(obj)
        spec = obj["spec"]
        versions = (GroupVersion(spec["group"], version["name"]) for version in spec["versions"] if version["served"])
        await self.registration.announce(metadata(obj)["name"], versions)
        self._done[metadata(obj)["name"]] = int(metadata(obj)["resourceVersion"])

    async def _accept(self, obj: Object) -> Object:
        """Accepts the names that no other definition has, and sets the condition NamesAccepted (naming_controller.go)."""
        spec, status, name = obj["spec"], obj.get("status") or {}, metadata(obj)["name"]
        self._names[name] = status.get("acceptedNames") or {}  # whichever client has written them
        if accepted_names.are_accepted(spec["names"], status.get("acceptedNames") or {}):
            self._waiting.discard(name)
            return obj  # whatever became of the conditions
        group = [names for owner, names in self._names.items() if owner.partition(".")[2] == spec["group"]]
        accepted = accepted_names.accept(spec["names"], status.get("acceptedNames") or {}, group)
        self._names[name] = accepted.names
        if accepted.names == spec["names"]:
            self._waiting.discard(name)
        else:
            self._waiting.add(name)
        if accepted.names == status.get("acceptedNames") and condition(obj, "NamesAccepted") == accepted.status:
            return obj

        def change(new: Object, now: float) -> None:
            set_condition(new, "NamesAccepted", accepted.status, accepted.reason, accepted.message, now)
            established = condition(new, "Established")
            if established != "True" and accepted.status == "True":
                message = "the initial names have been accepted"
                set_condition(new, "Established", "False", "Installing", message, now)
            elif established is None:
                set_condition(new, "Established", "False", "NotAccepted", "not all names are accepted", now)
            new["status"]["acceptedNames"] = accepted.names

        changed = await self._status.write(obj, change)
        await self._reconsider(spec["group"], name)
        return changed

    async def _establish(self, obj: Object) -> Object:
        """Sets the condition Established once the names are accepted (establishing_controller.go)."""
        if condition(obj, "NamesAccepted") != "True" or condition(obj, "Established") == "True":
            return obj
        established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        client = ((obj["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
        if client.get("caBundle") and bundle_problem(client["caBundle"]):
            established = ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
        return await self._status.write(obj, lambda new, now: set_condition(new, "Established", *established, now))

    async def _judge(self, obj: Object) -> Object:
        """Sets the condition that says whether an API in a group of the community is approved (apiapproval_controller.go)."""
        if not is_protected(obj["spec"]["group"]):
            return obj
        state, message = approval(obj)
        judgement = ("True" if state == "Approved" else "False", f"{state}Annotation", message)
        return await self._status.write(
            obj,
            lambda new, now: set_condition(new, "KubernetesAPIApprovalPolicyConformant", *judgement, now),
        )

    async def _reconsider(self, group: str, changed: str) -> None:
        """Follows other definitions of the group that wait for a name."""
        definitions = self._status.store
        for name in sorted(self._waiting - {changed}):
            stored = definitions.storage.get_now(definitions.key("", name))
            if name.partition(".")[2] == group and stored is not None:
                await self._follow(stored.value)

    async def _withdraw(self, name: str) -> None:
        self.served.unpublish(name)
        self._names.pop(name, None)
        self._waiting.discard(name)
        self._done.pop(name, None)
        await self.registration.announce(name, ())
        await self._reconsider(name.partition(".")[2], name)
