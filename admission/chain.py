"""Runs the plugins of a write: the mutating ones, later the validating ones, each in upstream's order.

Upstream: k8s.io/apiserver/pkg/admission/chain.go.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from fakeapiserver.admission.interfaces import Attributes, MutationInterface, Operation, ValidationInterface
from fakeapiserver.apimachinery.gvk import GroupResource

Plugin = MutationInterface | ValidationInterface
_Call = Callable[[Attributes], Awaitable[None]]
_Key = tuple[Operation, str, str, bool]
# Kinds come and go with CRDs; a table this large is thrown away and refilled.
_MAX_KEYS = 4096


class Chain:
    """`plugins` in order. Which of them a kind of write concerns is worked out once per operation, resource and subresource."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._plugins = tuple(plugins)
        self._mutating: dict[_Key, tuple[_Call, ...]] = {}
        self._validating: dict[_Key, tuple[_Call, ...]] = {}

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        return self._plugins

    async def admit(self, attributes: Attributes) -> None:
        """Changes `attributes.object`; raises the StatusError of the first plugin that refuses."""
        key = _key(attributes)
        calls = self._mutating.get(key)
        if calls is None:
            mutating = (p for p in self._plugins if isinstance(p, MutationInterface) and _concerns(p, key))
            calls = _keep(self._mutating, key, (p.admit for p in mutating))
        for call in calls:
            await call(attributes)
        state = attributes.reinvocation
        if state is not None and state.needed:
            # Once more, so that plugins see what webhooks have changed, and webhooks what plugins make of it.
            state.running = True
            for call in calls:
                await call(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Changes nothing; raises the StatusError of the first plugin that refuses."""
        key = _key(attributes)
        calls = self._validating.get(key)
        if calls is None:
            validating = (p for p in self._plugins if isinstance(p, ValidationInterface) and _concerns(p, key))
            calls = _keep(self._validating, key, (p.validate for p in validating))
        for call in calls:
            await call(attributes)


def _key(attributes: Attributes) -> _Key:
    resource = attributes.resource
    return attributes.operation, resource.group, resource.resource, bool(attributes.subresource)


def _keep(table: dict[_Key, tuple[_Call, ...]], key: _Key, calls: Iterable[_Call]) -> tuple[_Call, ...]:
    if len(table) >= _MAX_KEYS:
        table.clear()
    table[key] = tuple(calls)
    return table[key]


def _concerns(plugin: Plugin, key: _Key) -> bool:
    operation, group, resource, is_subresource = key
    if not plugin.handles(operation) or (is_subresource and not getattr(plugin, "subresources", True)):
        return False
    resources: frozenset[GroupResource] = getattr(plugin, "resources", frozenset())
    return not resources or GroupResource(group, resource) in resources
