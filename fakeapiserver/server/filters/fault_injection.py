"""The filter that injects faults (fakeapiserver/faults). While `active` is empty, it costs one look at that."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakeapiserver.chance import Chance
from fakeapiserver.clock import Timers
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.faults import files, injector
from fakeapiserver.storage.interface import Storage
from fakeapiserver.transport.round_trip import Intercept
from fakeapiserver.transport.webhook import WebhookConnections

if TYPE_CHECKING:
    from fakeapiserver.faults.injector import ActiveFault, Faults


class FaultInjection:
    """The faults of one server. The code that knows them is loaded with the first."""

    def __init__(
        self,
        clock: Timers,
        storage: Storage,
        scopes: RequestScopes,
        request_timeout: float,
        chance: Chance,
        to_webhooks: WebhookConnections,
        intercept_api_services: Callable[[Intercept | None], None],
    ) -> None:
        """`intercept_api_services` lets a function see the calls of aggregated API servers, and tries these at once."""
        # The faults that exist, in the order in which they were added.
        self.active: Sequence[ActiveFault] = ()
        self._dependencies = (clock, storage, scopes, request_timeout, chance.source("faults"))
        self._faults: Faults | None = None
        # Called with the faults when one was added or removed.
        self.on_change: Callable[[Sequence[ActiveFault]], None] | None = None
        self._to_webhooks = to_webhooks
        self._intercept_api_services = intercept_api_services

    @property
    def faults(self) -> "Faults":
        if self._faults is None:
            self._faults = injector.Faults(*self._dependencies, self._set)
        return self._faults

    def _set(self, active: "Sequence[ActiveFault]") -> None:
        self.active = active
        if self.on_change is not None:
            self.on_change(active)
        has_webhooks = any(fault.fault.webhook for fault in active)
        self._to_webhooks.intercept = self.faults.call_webhook if has_webhooks else None
        has_api_services = any(fault.fault.apiservice for fault in active)
        self._intercept_api_services(self.faults.call_api_service if has_api_services else None)

    async def add(self, several: Sequence[Mapping[str, Any]]) -> "list[ActiveFault]":
        """Adds faults, for open watches as well, or none of them if one can't be read. Raises ValueError with one sentence."""
        added = self.faults.add_all(several)
        await self.faults.strike_open_watches(added)
        return added

    def add_files(self, paths: Iterable[Path]) -> None:
        """Adds the faults of YAML files. Raises OSError, and ValueError with one sentence."""
        for path in paths:
            self.faults.add_all(files.read(path))

    async def before(self, request: Request) -> None:
        """Applies the faults that come before the request is handled. Raises the refusal, or ConnectionReset."""
        await self.faults.before(request)

    def after(self, request: Request, response: Response) -> Response:
        """Applies the faults that come after the request was handled. Raises the refusal, or ConnectionReset."""
        return self.faults.after(request, response)
