"""Where events go: a log, rotated, and a webhook; at once or in batches.

Upstream: k8s.io/apiserver/plugin/pkg/audit/{log,webhook,buffered,truncate}, gopkg.in/natefinch/lumberjack.v2.
"""

import asyncio
import gzip
import logging
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, Protocol

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.server.audit import event
from fakeapiserver.server.audit.policy import API_VERSION
from fakeapiserver.transport.webhook import Endpoint, WebhookClient, WebhookError

log = logging.getLogger(__name__)

_DAY: Final = 86400.0
_MEGABYTE: Final = 1024 * 1024
# Upstream: DefaultRetryBackoffWithInitialDelay and defaultRequestTimeout in util/webhook/webhook.go.
_STEPS: Final = 5
_FACTOR: Final = 1.5
_JITTER: Final = 0.2
_TIMEOUT: Final = 30.0


class Backend(Protocol):
    async def process(self, events: Sequence[Object]) -> bool:
        """Whether the events are safe: a request may be refused where they aren't."""

    async def run(self) -> None:
        """What goes on beside requests, until cancelled."""

    async def flush(self) -> None:
        """Hands on what is held back."""


class _Immediate:
    """Nothing is held back."""

    async def run(self) -> None:
        pass

    async def flush(self) -> None:
        pass


# ----------------------------------------------------------------------- log


@dataclass(slots=True)
class Rotation:
    """`max_size` in megabytes (0: never rotated), `max_age` in days, `max_backups` in files (0: all are kept)."""

    max_size: int = 100
    max_age: int = 366
    max_backups: int = 100
    compress: bool = False


class LogFile:
    """A file that is put aside when it gets too large: `audit.log` becomes `audit-2026-11-21T17-30-00.000.log`."""

    def __init__(self, path: Path, rotation: Rotation) -> None:
        """In a folder that is there. OSError where it can't be written."""
        self._path = path
        self._rotation = rotation
        self._file = self._open()
        self._size = path.stat().st_size

    def _open(self) -> int:
        return os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def write(self, data: bytes) -> None:
        """OSError."""
        most = self._rotation.max_size * _MEGABYTE
        if most and len(data) > most:
            raise OSError(f"write length {len(data)} exceeds maximum file size {most}")
        if most and self._size and self._size + len(data) > most:
            self._rotate()
        os.write(self._file, data)
        self._size += len(data)

    def _rotate(self) -> None:
        os.close(self._file)
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
        self._path.rename(self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        self._file, self._size = self._open(), 0
        self._clean_up()

    def _clean_up(self) -> None:
        backups = self._backups()
        kept = backups[-self._rotation.max_backups :] if self._rotation.max_backups else backups
        if self._rotation.max_age:
            oldest = time.time() - self._rotation.max_age * _DAY
            kept = [path for path in kept if path.stat().st_mtime >= oldest]
        for path in backups:
            if path not in kept:
                path.unlink()
            elif self._rotation.compress and path.suffix != ".gz":
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()

    def _backups(self) -> list[Path]:
        """Those of this file, oldest first."""
        stem, suffix = self._path.stem, self._path.suffix
        found = [*self._path.parent.glob(f"{stem}-*T*{suffix}"), *self._path.parent.glob(f"{stem}-*T*{suffix}.gz")]
        return sorted(set(found))

    def close(self) -> None:
        os.close(self._file)


class StandardOutput:
    """What `-` stands for."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout

    def write(self, data: bytes) -> None:
        self._stream.write(data.decode())
        self._stream.flush()


class Log(_Immediate):
    """A line for each event, as JSON or in the `legacy` format."""

    def __init__(self, out: LogFile | StandardOutput, *, legacy: bool = False) -> None:
        self._out = out
        self._legacy = legacy

    async def process(self, events: Sequence[Object]) -> bool:
        try:
            for one in events:
                self._out.write((event.line(one).encode() if self._legacy else json.encode(one)) + b"\n")
        except OSError as error:
            log.error("audit events were lost: %s", error)
            return False
        return True


# ------------------------------------------------------------------- webhook


class Webhook(_Immediate):
    """Posts an EventList; every failure is tried again. `initial_backoff` in seconds."""

    def __init__(self, endpoint: Endpoint, initial_backoff: float) -> None:
        self._endpoint = endpoint
        self._initial_backoff = initial_backoff
        self._client = WebhookClient(_no_service)

    async def process(self, events: Sequence[Object]) -> bool:
        found = {"kind": "EventList", "apiVersion": API_VERSION, "metadata": {}, "items": list(events)}
        body, pause = json.encode(found) + b"\n", self._initial_backoff
        for step in range(1, _STEPS + 1):
            try:
                await self._client.send(self._endpoint, body, _TIMEOUT)
                return True
            except WebhookError as error:
                if step == _STEPS:
                    log.error("%d audit events were lost: %s", len(events), error)
                    break
            await asyncio.sleep(pause * (1 + random.random() * _JITTER))
            pause *= _FACTOR
        return False


def _no_service(namespace: str, name: str, port: int) -> tuple[str, int]:
    raise LookupError(f"a kubeconfig names no Service, but {namespace}/{name}:{port} was asked for")


# ------------------------------------------------------------------ wrappers


class IgnoreErrors:
    """What is lost refuses nobody's request."""

    def __init__(self, delegate: Backend) -> None:
        self._delegate = delegate

    async def process(self, events: Sequence[Object]) -> bool:
        await self._delegate.process(events)
        return True

    async def run(self) -> None:
        await self._delegate.run()

    async def flush(self) -> None:
        await self._delegate.flush()


@dataclass(slots=True)
class Batching:
    """`max_wait` in seconds; `qps` and `burst` of batches, None where they aren't throttled; `concurrent`: a batch doesn't
    wait for the one before."""

    buffer_size: int
    max_size: int
    max_wait: float
    qps: float | None = None
    burst: int = 0
    concurrent: bool = False


@dataclass(slots=True)
class Buffered:
    """Takes events at once and hands them on in batches; what comes while the buffer is full is lost."""

    delegate: Backend
    batching: Batching
    _queue: asyncio.Queue[Object] = field(init=False)
    _sending: set[asyncio.Task[bool]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._queue = asyncio.Queue(self.batching.buffer_size)

    async def process(self, events: Sequence[Object]) -> bool:
        for one in events:
            try:
                self._queue.put_nowait(one)
            except asyncio.QueueFull:
                log.error("an audit event was lost: audit buffer queue blocked")
        return True

    async def run(self) -> None:
        throttle = _Throttle(self.batching.qps, self.batching.burst) if self.batching.qps else None
        while True:
            batch = [await self._queue.get()]
            try:
                async with asyncio.timeout(self.batching.max_wait):
                    while len(batch) < self.batching.max_size:
                        batch.append(await self._queue.get())
            except TimeoutError:
                pass
            except asyncio.CancelledError:
                await self.delegate.process(batch)
                raise
            if throttle is not None:
                await throttle.accept()
            await self._send(batch)

    async def _send(self, batch: Sequence[Object]) -> None:
        if not self.batching.concurrent:
            await self.delegate.process(batch)
            return
        task = asyncio.ensure_future(self.delegate.process(batch))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def flush(self) -> None:
        await asyncio.gather(*self._sending)
        while not self._queue.empty():
            most = min(self.batching.max_size, self._queue.qsize())
            await self.delegate.process([self._queue.get_nowait() for _ in range(most)])
        await self.delegate.flush()


class _Throttle:
    """A bucket of `burst` tokens that `qps` a second flow into."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._tokens = self._burst
        self._last = time.monotonic()

    async def accept(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._qps) - 1
        self._last = now
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._qps)


@dataclass(slots=True)
class Truncated:
    """Events that are too large lose their objects, and those that still are get lost. Sizes in bytes."""

    delegate: Backend
    max_event_size: int
    max_batch_size: int

    async def process(self, events: Sequence[Object]) -> bool:
        batch, size, safe = list[Object](), 0, True
        for whole in events:
            one, length = whole, len(json.encode(whole)) + 1
            if length > self.max_event_size and one["level"] in ("Request", "RequestResponse"):
                one = _truncated(one)
                length = len(json.encode(one)) + 1
            if length > self.max_event_size:
                log.error("an audit event was lost: event is too large even after truncating")
                continue
            if batch and size + length > self.max_batch_size:
                safe = await self.delegate.process(batch) and safe
                batch, size = [], 0
            batch.append(one)
            size += length
        return (not batch or await self.delegate.process(batch)) and safe

    async def run(self) -> None:
        await self.delegate.run()

    async def flush(self) -> None:
        await self.delegate.flush()


def _truncated(one: Object) -> Object:
    kept = {key: value for key, value in one.items() if key not in ("requestObject", "responseObject")}
    return {**kept, "annotations": {**one.get("annotations", {}), "audit.k8s.io/truncated": "true"}}
