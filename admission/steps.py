"""The changes of an object by each plugin, for a recording. A chain records them if it is made for that, and someone collects them."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, Literal

from msgspec import Struct

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.measures import Step
from fakeapiserver.apimachinery.serializer import json

# The steps of its webhooks are recorded instead.
_WEBHOOKS: Final = "MutatingAdmissionWebhook"
_Call = Callable[[Attributes], Awaitable[None]]


class PluginStep(Struct, frozen=True):
    """The work of a plugin or a webhook: the object before and after it, or its patch, all as JSON. Without any of these it has refused
    the object."""

    plugin: str
    kind: Literal["mutating", "validating", "webhook"]
    before: bytes = b""
    after: bytes = b""
    patch: bytes = b""

    @property
    def changed(self) -> bool:
        return bool(self.after or self.patch)


# Collects the steps of the write that is being admitted; None: they aren't collected.
collected: Final[ContextVar[list[PluginStep] | None]] = ContextVar("collected", default=None)


def recorded(plugin: str, step: Step, call: _Call) -> _Call:
    """Returns `call` with its step recorded if it changes the object or refuses it."""

    async def run(attributes: Attributes) -> None:
        steps = collected.get()
        if steps is None:
            await call(attributes)
            return
        before = _encoded(attributes) if step == "admit" else b""
        try:
            await call(attributes)
        except BaseException:
            steps.append(PluginStep(plugin, "mutating" if step == "admit" else "validating"))
            raise
        if step == "admit" and plugin != _WEBHOOKS and (after := _encoded(attributes)) != before:
            steps.append(PluginStep(plugin, "mutating", before, after))

    return run


def _encoded(attributes: Attributes) -> bytes:
    return b"" if attributes.object is None else json.encode(attributes.object)
