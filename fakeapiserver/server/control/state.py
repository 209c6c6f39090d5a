"""The part of the test control that saves, loads, compares and exports the state."""

from collections.abc import Callable
from typing import Annotated, Any, Protocol

import msgspec
from fastapi import APIRouter, HTTPException, Query, Request, Response

from fakeapiserver.clock import Clock
from fakeapiserver.server import adopting, exported
from fakeapiserver.server.metrics_apis.apis import MetricsAPIs
from fakeapiserver.state import diff as diffs
from fakeapiserver.state import file, sources
from fakeapiserver.state.found import Gathered, LoadReport
from fakeapiserver.storage.mvcc import Snapshot


class Controlled(exported.Exported, adopting.Adopting, Protocol):
    """The part of an API server that has a state."""

    @property
    def metrics_apis(self) -> MetricsAPIs: ...

    @property
    def clock(self) -> Clock: ...

    def recorded(self) -> bytes: ...

    def snapshot(self) -> Snapshot: ...

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None: ...


SnapshotId = Annotated[int, Query(ge=1)]


def router(server: Controlled, find: Callable[[int], Snapshot]) -> APIRouter:
    """The paths below /fakeapiserver/state. find: returns a snapshot by its number, or raises HTTPException."""
    routes = APIRouter()
    version = server.table.scheme.version

    @routes.get("/state/save", response_class=Response)
    async def save_state() -> Response:
        """Returns the file of the present state with its history, which `serve --load` takes, and with the requests if the server has its
        page. It contains the values of Secrets."""
        served = tuple(server.metrics_apis.served)
        state = file.Saved(version, server.storage.fork(), server.clock.now(), served, recording=server.recorded())
        return Response(file.encode(state), media_type="application/json")

    @routes.post("/state/load")
    async def load_state(request: Request) -> dict[str, Any]:
        """Restores the saved state that the body is, or adds the objects of another file: manifests, lists, an archive of them, an etcd's
        file. Revisions keep rising; all open watches end, so that their clients list again. Returns a report."""
        try:
            state = sources.of_bytes(await request.body(), "the body")
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        if isinstance(state, Gathered):
            report: dict[str, Any] = msgspec.to_builtins(await adopting.adopt(server, state))
            return report
        if state.kubernetes_version != version:
            text = f"the state is of Kubernetes {state.kubernetes_version}, but this server serves {version}: start one with serve --load"
            raise HTTPException(422, text)
        await server.restore(state.storage.snapshot(), state.storage.revision)
        restored: dict[str, Any] = msgspec.to_builtins(LoadReport("the body"))
        return restored

    @routes.get("/state/diff", response_class=Response)
    async def diff_states(
        since: Annotated[int, Query(alias="from", ge=1)], to: SnapshotId | None = None, noise: bool = False
    ) -> Response:
        """Returns the differences between a snapshot and another one, or the present state, as YAML."""
        new = find(to) if to is not None else server.snapshot()
        return Response(f"{diffs.diff(find(since), new, noise=noise)}\n", media_type="text/yaml")

    @routes.get("/state/export")
    async def export_state(secrets: bool = False) -> list[dict[str, Any]]:
        """Returns the manifests of the users' objects, with the values of Secrets only if `secrets`."""
        return [*exported.objects(server, secrets=secrets)]

    return routes
