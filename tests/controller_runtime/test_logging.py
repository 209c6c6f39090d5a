"""Log lines of a reconcile say to which request they belong, wherever they are written."""

import asyncio
import io
import json
import logging

from fakeapiserver.controller_runtime import Request, TerminalError
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.logging import JSONFormatter, RequestContext
from fakeapiserver.controller_runtime.metrics import Metrics

log = logging.getLogger("operator")


async def called() -> None:
    """Somewhere below the reconciler."""
    log.info("hello %s", "world")


class Reconciles:
    def __init__(self) -> None:
        self.done = asyncio.Event()

    async def reconcile(self, request: Request) -> None:
        await asyncio.gather(called(), called())
        if request.name == "b":
            self.done.set()
            raise TerminalError("it can't be")
        try:
            raise KeyError("a mistake")
        except KeyError:
            log.exception("it failed")


def lines_of(requests: list[Request]) -> list[dict[str, object]]:
    written = io.StringIO()
    output = logging.StreamHandler(written)
    output.setFormatter(JSONFormatter())
    output.addFilter(RequestContext())
    loggers = (log, logging.getLogger("fakeapiserver.controller_runtime.controller"))

    async def scenario() -> None:
        reconciler = Reconciles()
        values = {"controllerGroup": "example.com", "controllerKind": "Widget"}
        controller = Controller("widget", reconciler, metrics=Metrics(), values=values)
        for request in requests:
            controller.queue.add(request)
        running = asyncio.ensure_future(controller.run())
        await reconciler.done.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(output)
        logger.setLevel(logging.DEBUG)
    try:
        asyncio.run(scenario())
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(output)
            logger.setLevel(level)
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_lines_say_what_they_are_about() -> None:
    lines = lines_of([Request("ns", "a"), Request("", "b")])
    about = {"controller": "widget", "controllerGroup": "example.com", "controllerKind": "Widget"}
    hello = [line for line in lines if line["msg"] == "hello world"]
    assert [{key: line[key] for key in ("namespace", "name", "Widget", *about)} for line in hello] == [
        *[{**about, "namespace": "ns", "name": "a", "Widget": {"name": "a", "namespace": "ns"}}] * 2,
        *[{**about, "namespace": "", "name": "b", "Widget": {"name": "b"}}] * 2,
    ]
    identities = [line["reconcileID"] for line in hello]
    assert identities[0] == identities[1] != identities[2] == identities[3]
    (failure,) = (line for line in lines if line["msg"] == "it failed")
    assert (failure["level"], failure["logger"], failure["error"]) == ("error", "operator", "'a mistake'")
    assert str(failure["stacktrace"]).startswith("Traceback")
    (error,) = (line for line in lines if str(line["msg"]).startswith("reconciler error"))
    assert (error["name"], error["msg"]) == ("b", "reconciler error: widget of b: terminal error: it can't be")
    assert not {"name", "reconcileID"} & lines[-1].keys()  # the controller has stopped
