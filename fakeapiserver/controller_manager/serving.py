"""/healthz, /healthz/NAME and /metrics of a controller manager (upstream: k8s.io/controller-manager/app/serve.go)."""

from functools import partial

from fakeapiserver.controller_manager.descriptor import AVAILABLE
from fakeapiserver.controller_manager.manager import ControllerManager
from fakeapiserver.controller_runtime.healthz import Health
from fakeapiserver.controller_runtime.http_server import Application, Receive, Scope, Send, respond
from fakeapiserver.controller_runtime.metrics import CONTENT_TYPE


def healthz_and_metrics(manager: ControllerManager) -> Application:
    """An ASGI application. A controller is healthy unless it has ended though it should run."""
    health = Health()
    for name in AVAILABLE:
        health.add_healthz_check(name, partial(_check, manager, name))

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/metrics":
            await respond(send, 200, manager.metrics.exposition(), CONTENT_TYPE)
        else:
            await health(scope, receive, send)

    return application


def _check(manager: ControllerManager, name: str) -> None:
    if name in manager.failures:
        raise RuntimeError(manager.failures[name])
