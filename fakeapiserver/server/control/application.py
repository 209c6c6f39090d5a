"""The test control: what a test may do to a running server and no real one offers, for any language, over HTTP.

A FastAPI application below /fakeapiserver/, with its page of documentation at /fakeapiserver/docs. It stands behind the handler
chain, so a caller must be allowed the non-resource URL. Imported when first asked for: importing FastAPI takes longer than the
server's whole start.
"""

from typing import Protocol

from fastapi import FastAPI

from fakeapiserver.server.control import (
    clock,
    controllers,
    faults,
    forks,
    metrics,
    nodes,
    outages,
    page,
    requests,
    snapshots,
    state,
    storage,
    timeline,
)
from fakeapiserver.server.control.errors import PREFIX, control_application


class Controlled(
    snapshots.Controlled,
    controllers.Controlled,
    clock.Controlled,
    nodes.Controlled,
    faults.Controlled,
    forks.Controlled,
    requests.Controlled,
    metrics.Controlled,
    outages.Controlled,
    page.Controlled,
    state.Controlled,
    timeline.Controlled,
    Protocol,
):
    """The part of an API server that is controlled."""


def control(server: Controlled) -> FastAPI:
    """The application for one server."""
    app = control_application("fakeapiserver test control")
    taken = snapshots.Snapshots()
    for routes in (
        storage.router(server),
        snapshots.router(server, taken),
        controllers.router(server),
        clock.router(server),
        nodes.router(server),
        faults.router(server),
        forks.router(server),
        requests.router(server),
        metrics.router(server),
        outages.router(server),
        page.router(server),
        state.router(server, taken.find),
        timeline.router(server),
    ):
        app.include_router(routes, prefix=PREFIX)
    return app
