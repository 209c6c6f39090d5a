"""Tasks that run beside the requests until the server stops."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)

Run = Callable[[], Coroutine[None, None, None]]


def start(run: Run, name: str) -> "asyncio.Task[None]":
    """Runs `run` in a task until it is cancelled. Nothing awaits it while the server runs, so its failure is logged."""
    task = asyncio.create_task(run(), name=name)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s can't go on: %s", task.get_name(), error, exc_info=error)
