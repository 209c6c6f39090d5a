"""Runs the plugins of a write: the mutating ones, later the validating ones, each in upstream's order.

Upstream: k8s.io/apiserver/pkg/admission/chain.go.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import perf_counter

from fakeapiserver.admission import steps
from fakeapiserver.admission.interfaces import Attributes, MutationInterface, Operation, ValidationInterface
from fakeapiserver.admission.measures import PLUGIN_SECONDS, STEP_SECONDS, Step
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.instruments import Histogram, Instruments

Plugin = MutationInterface | ValidationInterface
_Call = Callable[[Attributes], Awaitable[None]]
# Each plugin's name, what it does and how long that took, and how long all of it took.
_Calls = tuple[tuple[tuple[str, _Call, Histogram], ...], Histogram]
_Key = tuple[Step, Operation, str, str, bool]
# Kinds come and go with CRDs; a table this large is thrown away and refilled.
_MAX_KEYS = 4096


class Chain:
    """`plugins` in order. Which of them a kind of write concerns is worked out once per operation, resource and subresource.

    `records_steps`: what each plugin changes can be collected (steps.py)."""

    def __init__(
        self, plugins: Sequence[Plugin], instruments: Instruments | None = None, *, records_steps: bool = False
    ) -> None:
        self._plugins = tuple(plugins)
        self._calls: dict[_Key, _Calls] = {}
        self._records_steps = records_steps
        self._instruments = Instruments() if instruments is None else instruments

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        return self._plugins

    async def admit(self, attributes: Attributes) -> None:
        """Changes `attributes.object`; raises the StatusError of the first plugin that refuses."""
        await self._run("admit", attributes)
        state = attributes.reinvocation
        if state is not None and state.needed:
            # Once more, so that plugins see what webhooks have changed, and webhooks what plugins make of it.
            state.running = True
            await self._run("admit", attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Changes nothing; raises the StatusError of the first plugin that refuses."""
        await self._run("validate", attributes)

    async def _run(self, step: Step, attributes: Attributes) -> None:
        resource, operation = attributes.resource, attributes.operation
        key = (step, operation, resource.group, resource.resource, bool(attributes.subresource))
        calls, whole = self._calls.get(key) or self._found(key)
        ran = 0
        started = last = perf_counter()
        try:
            for _, call, timing in calls:
                await call(attributes)
                now = perf_counter()
                timing.observe(now - last)
                last = now
                ran += 1
        except BaseException:
            now = perf_counter()
            self._instruments.observe(PLUGIN_SECONDS, now - last, calls[ran][0], operation, "true", step)
            self._instruments.observe(STEP_SECONDS, now - started, operation, "true", step)
            raise
        whole.observe(last - started)

    def _found(self, key: _Key) -> _Calls:
        if len(self._calls) >= _MAX_KEYS:
            self._calls.clear()
        whole = self._instruments.histogram(STEP_SECONDS, key[1], "false", key[0])
        self._calls[key] = calls = tuple(self._concerned(key)), whole
        return calls

    def _concerned(self, key: _Key) -> Iterator[tuple[str, _Call, Histogram]]:
        step, operation, group, resource, is_subresource = key
        for plugin in self._plugins:
            call: _Call | None = getattr(plugin, step, None)
            if call is not None and _concerns(plugin, operation, GroupResource(group, resource), is_subresource):
                name = type(plugin).__name__
                if self._records_steps:
                    call = steps.recorded(name, step, call)
                yield name, call, self._instruments.histogram(PLUGIN_SECONDS, name, operation, "false", step)


def _concerns(plugin: Plugin, operation: Operation, resource: GroupResource, is_subresource: bool) -> bool:
    if not plugin.handles(operation) or (is_subresource and not getattr(plugin, "subresources", True)):
        return False
    resources: frozenset[GroupResource] = getattr(plugin, "resources", frozenset())
    return not resources or resource in resources
