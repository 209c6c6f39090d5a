"""A running cluster made as it was: not only what is stored, but everything that a test can set."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.local import LocalServer
from fakeapiserver.storage.mvcc import Snapshot

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import Mode
    from fakeapiserver.nodes.simulation import Simulation

# Seconds until controllers that are busy with the state that goes away are no longer waited for.
_PATIENCE: Final = 5.0


class Mark(Struct, frozen=True):
    """The state that `reset` restores: stored objects, the mode of each controller, and which metrics APIs are served."""

    snapshot: Snapshot
    modes: "Mapping[str, Mode]"
    metrics: Collection[str]


async def mark(server: LocalServer) -> Mark:
    """The state of this moment, as soon as the controllers are at rest. NotSettled if they don't come to rest."""
    assert server.api is not None
    if server.controllers is not None:
        await server.controllers.settle()
    modes = dict(server.controllers.modes) if server.controllers is not None else {}
    return Mark(server.api.snapshot(), modes, server.api.metrics_apis.served)


async def reset(server: LocalServer, to: Mark) -> None:
    """Makes everything as it was: objects and definitions, the clock, controllers' modes, nodes, scripts, metrics, faults, and the logs of
    requests and of access; the recording begins again. Open watches end, so that clients list again. Revisions go on rising."""
    api, controllers = server.api, server.controllers
    assert api is not None
    if isinstance(server.clock, AdjustableClock):
        server.clock.reset()
    if server.simulation is not None:
        _restart(server.simulation)
    if api.faults.active:
        api.faults.faults.clear()
    api.metrics_apis.clear()
    api.metrics_apis.served = to.metrics
    if controllers is None:
        await api.revert(to.snapshot)
    else:
        with suppress(TimeoutError):
            await controllers.settle(_PATIENCE)  # what they are about to write belongs to the state that goes away
        with suppress(TimeoutError):
            async with controllers.held(_PATIENCE):  # none may act on a mixture of both states
                await api.revert(to.snapshot)
        for name, mode in to.modes.items():
            if controllers.mode(name) != mode:
                await controllers.set_mode(name, mode)
    for log in (api.access_log, api.request_log):
        if log is not None:
            log.forget()
    if api.recorder is not None:
        api.recorder.restart()


def _restart(simulation: "Simulation") -> None:
    """Removes all scripts; every node runs and has enough of everything."""
    simulation.clear_scripts()
    for name, state in simulation.nodes.items():
        if not state.runs or state.shutdown is not None or state.low or state.lasting:
            state.low.clear()
            state.lasting.clear()
            simulation.set_running(name, True)
