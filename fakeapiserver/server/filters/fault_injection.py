"""The filter that injects faults (fakeapiserver/faults). While `active` is empty, it costs one look at that."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakeapiserver.clock import Timers
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.faults import files, injector
from fakeapiserver.storage.interface import Storage

if TYPE_CHECKING:
    from fakeapiserver.faults.injector import ActiveFault, Faults


class FaultInjection:
    """The faults of one server. The code that knows them is loaded with the first."""

    def __init__(
        self,
        clock: Timers,
        storage: Storage,
        find_scope: Callable[[Request], RequestScope | None],
        request_timeout: float,
    ) -> None:
        # The faults that exist, in the order in which they were added.
        self.active: Sequence[ActiveFault] = ()
        self._dependencies = (clock, storage, find_scope, request_timeout)
        self._faults: Faults | None = None

    @property
    def faults(self) -> "Faults":
        if self._faults is None:
            self._faults = injector.Faults(*self._dependencies, self._set)
        return self._faults

    def _set(self, active: "Sequence[ActiveFault]") -> None:
        self.active = active

    def add(self, fields: Mapping[str, Any]) -> "ActiveFault":
        """Adds the fault that `fields` describe. Raises ValueError with one sentence."""
        return self.faults.add(fields)

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
