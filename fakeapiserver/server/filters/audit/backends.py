"""The backends of events: a log, rotated, and a webhook; at once or in batches.

Upstream: k8s.io/apiserver/plugin/pkg/audit/{log,webhook,buffered,truncate}, gopkg.in/natefinch/lumberjack.v2.
"""

import asyncio
import gzip
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import IO, Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.server.filters.audit import event
from fakeapiserver.server.filters.audit.counts import AuditCounts
from fakeapiserver.server.filters.audit.policy import API_VERSION
from fakeapiserver.transport.client_config import Credentials
from fakeapiserver.transport.webhook import Endpoint, WebhookClient, WebhookError

_DAY: Final = 86400.0
_MEGABYTE: Final = 1024 * 1024
_STAMP: Final = "%Y-%m-%dT%H-%M-%S.%f"
_COMPRESSED: Final = ".gz"
# Upstream: DefaultRetryBackoffWithInitialDelay and defaultRequestTimeout in util/webhook/webhook.go.
_STEPS: Final = 5
_FACTOR: Final = 1.5
_JITTER: Final = 0.2
_TIMEOUT: Final = 30.0
_POSTPONED: Final = 10
# What an EventList's items don't say again.
_TYPE: Final = ("kind", "apiVersion")


# Objects in events are texts already, in Go's form.
_encode: Final = msgspec.json.Encoder().encode
# What Go's encoder keeps out of texts, and JSON has nowhere else.
_ESCAPES: Final = (
    (b"&", b"\\u0026"),
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def encode(value: Object) -> bytes:
    text = _encode(value)
    for character, escape in _ESCAPES:
        if character in text:
            text = text.replace(character, escape)
    return text


class Backend(Protocol):
    async def process(self, events: Sequence[Object]) -> bool:
        """Reports whether the events are safe: a request may be refused where they aren't."""

    async def run(self) -> None:
        """Runs background work until cancelled."""

    async def flush(self) -> None:
        """Hands on what is held back."""


class _Immediate:
    """Writes events at once."""

    async def run(self) -> None:
        pass

    async def flush(self) -> None:
        pass


# ----------------------------------------------------------------------- log


class Rotation(Struct):
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
        self._file = self._open(0o600)
        self._size = path.stat().st_size
        self._cleaning: Thread | None = None
        if rotation.max_size:
            self._clean_up()

    def _open(self, mode: int) -> int:
        return os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, mode)

    def write(self, data: bytes) -> None:
        """OSError."""
        most = self._rotation.max_size * _MEGABYTE
        if most and len(data) > most:
            raise OSError(f"write length {len(data)} exceeds maximum file size {most}")
        if most and self._size and self._size + len(data) > most:
            self._rotate()
        self._size += len(data)
        while data:
            data = data[os.write(self._file, data) :]

    def _rotate(self) -> None:
        stamp = datetime.now(UTC).strftime(_STAMP)[:-3]
        mode = os.fstat(self._file).st_mode & 0o777
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another process has moved it
            self._path.rename(self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        old, self._file, self._size = self._file, self._open(mode), 0
        os.close(old)
        self._clean_up()

    def _clean_up(self) -> None:
        """In a thread: to compress takes seconds."""
        self._await_cleaning()
        self._cleaning = Thread(target=clean_up, args=(self._path, self._rotation), daemon=True)
        self._cleaning.start()

    def _await_cleaning(self) -> None:
        if self._cleaning is not None:
            self._cleaning.join()

    def close(self) -> None:
        self._await_cleaning()
        os.close(self._file)


def clean_up(path: Path, rotation: Rotation) -> None:
    """Removes the files that were put aside and are too many or too old by their names, and compresses the others."""
    kept = files = backups(path)  # listed once: a file that is put aside meanwhile is the next one's
    if rotation.max_backups:
        names = sorted({file.name.removesuffix(_COMPRESSED) for file in kept}, reverse=True)[: rotation.max_backups]
        kept = [file for file in kept if file.name.removesuffix(_COMPRESSED) in names]
    if rotation.max_age:
        oldest = datetime.now(UTC).timestamp() - rotation.max_age * _DAY
        kept = [file for file in kept if (stamp := _stamp_of(file, path)) is not None and stamp >= oldest]
    for file in files:
        if file not in kept:
            file.unlink(missing_ok=True)
        elif rotation.compress and file.suffix != _COMPRESSED:
            _compress(file)


def backups(path: Path) -> list[Path]:
    """Returns the backups of a log, oldest first."""
    files = [file for file in path.parent.iterdir() if _stamp_of(file, path) is not None and file.is_file()]
    return sorted(files, key=lambda file: file.name)


def _stamp_of(file: Path, log_file: Path) -> float | None:
    """When it was put aside, in seconds since the epoch; None for a file that wasn't."""
    name = file.name.removesuffix(_COMPRESSED)
    start, end = f"{log_file.stem}-", log_file.suffix
    if not name.startswith(start) or not name.endswith(end):
        return None
    try:
        stamp = datetime.strptime(name[len(start) : len(name) - len(end)], _STAMP)
    except ValueError:
        return None
    return stamp.replace(tzinfo=UTC).timestamp()


def _compress(file: Path) -> None:
    target = file.with_name(file.name + _COMPRESSED)
    with file.open("rb") as source, gzip.open(target, "wb") as packed:
        shutil.copyfileobj(source, packed)
    target.chmod(file.stat().st_mode & 0o777)
    file.unlink()


class StandardOutput:
    """Writes events to standard output (`-`)."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout

    def write(self, data: bytes) -> None:
        self._stream.write(data.decode())
        self._stream.flush()


class Log(_Immediate):
    """A line for each event, as JSON or in the `legacy` format."""

    def __init__(self, out: LogFile | StandardOutput, counts: AuditCounts, *, legacy: bool = False) -> None:
        self._out = out
        self._counts = counts
        self._legacy = legacy

    async def process(self, events: Sequence[Object]) -> bool:
        safe = True
        for one in events:
            try:
                self._out.write((event.line(one).encode() if self._legacy else encode(one)) + b"\n")
            except OSError as error:
                self._counts.lost("log", 1, error)
                safe = False
        return safe


# ------------------------------------------------------------------- webhook


class Webhook(_Immediate):
    """Posts an EventList; every failure is tried again. `initial_backoff` in seconds."""

    def __init__(
        self, endpoint: Endpoint, initial_backoff: float, counts: AuditCounts, credentials: Credentials | None = None
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._initial_backoff = initial_backoff
        self._counts = counts
        self._client = WebhookClient(_no_service)

    async def process(self, events: Sequence[Object]) -> bool:
        items = [{key: value for key, value in one.items() if key not in _TYPE} for one in events]
        event_list = {"kind": "EventList", "apiVersion": API_VERSION, "metadata": {}, "items": items}
        body, pause = encode(event_list) + b"\n", self._initial_backoff
        for step in range(1, _STEPS + 1):
            try:
                await self._send(body)
                return True
            except (WebhookError, OSError, ValueError) as error:
                if step == _STEPS:
                    self._counts.lost("webhook", len(events), error)
                    break
            await asyncio.sleep(pause * (1 + random.random() * _JITTER))
            pause *= _FACTOR
        return False

    async def _send(self, body: bytes) -> None:
        """Sends a batch, again at the time that the server names, a few times (upstream: client-go's rest/with_retry.go).

        Raises WebhookError, and OSError and ValueError without credentials.
        """
        for _ in range(_POSTPONED):
            try:
                await self._client.send(await self._as_now(), body, _TIMEOUT)
                return
            except WebhookError as error:
                if error.status == 401 and self._credentials is not None:
                    self._credentials.rejected()
                if error.retry_after is None or not (error.status == 429 or error.status >= 500):
                    raise
                await asyncio.sleep(error.retry_after)
        await self._client.send(await self._as_now(), body, _TIMEOUT)

    async def _as_now(self) -> Endpoint:
        if self._credentials is None:
            return self._endpoint
        return replace(self._endpoint, identity=await self._credentials.current())


def _no_service(namespace: str, name: str, port: int) -> tuple[str, int]:
    raise LookupError(f"a kubeconfig names no Service, but {namespace}/{name}:{port} was asked for")


# ------------------------------------------------------------------ wrappers


class IgnoreErrors:
    """Ignores errors, so that lost events refuse no request."""

    def __init__(self, delegate: Backend) -> None:
        self._delegate = delegate

    async def process(self, events: Sequence[Object]) -> bool:
        await self._delegate.process(events)
        return True

    async def run(self) -> None:
        await self._delegate.run()

    async def flush(self) -> None:
        await self._delegate.flush()


class Batching(Struct):
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
    """Takes events at once and hands them on in batches; what comes while the buffer is full, or after the end, is lost."""

    delegate: Backend
    batching: Batching
    counts: AuditCounts
    _queue: asyncio.Queue[Object] = field(init=False)
    _batch: list[Object] = field(default_factory=list)
    _sending: set[asyncio.Task[bool]] = field(default_factory=set)
    _ended: bool = False

    def __post_init__(self) -> None:
        self._queue = asyncio.Queue(self.batching.buffer_size)

    async def process(self, events: Sequence[Object]) -> bool:
        for index, one in enumerate(events):
            try:
                if self._ended:
                    raise asyncio.QueueFull
                self._queue.put_nowait(one)
            except asyncio.QueueFull:
                why = "audit backend shut down" if self._ended else "audit buffer queue blocked"
                self.counts.lost("buffered", len(events) - index, why)
                break
        return True

    async def run(self) -> None:
        throttle = _Throttle(self.batching.qps, self.batching.burst) if self.batching.qps else None
        while True:
            await self._collect()
            if throttle is not None:
                await throttle.accept()
            task = self._send()
            if not self.batching.concurrent:
                await asyncio.shield(task)

    async def _collect(self) -> None:
        """Fills the batch. Time runs from the batch before, so that the first event waits no longer than others."""
        start, longest = time.monotonic(), self.batching.max_wait
        self._batch.append(await self._queue.get())
        while len(self._batch) < self.batching.max_size and not self._queue.empty():
            self._batch.append(self._queue.get_nowait())
        if longest <= 0 or len(self._batch) >= self.batching.max_size:
            return
        try:
            async with asyncio.timeout(longest - (time.monotonic() - start) % longest):
                while len(self._batch) < self.batching.max_size:
                    self._batch.append(await self._queue.get())
        except TimeoutError:
            pass

    def _send(self) -> asyncio.Task[bool]:
        batch, self._batch = self._batch, []
        task = asyncio.ensure_future(self.delegate.process(batch))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return task

    async def flush(self) -> None:
        """After `run` was cancelled. What comes later is lost."""
        while not self._queue.empty() or self._batch:
            while len(self._batch) < self.batching.max_size and not self._queue.empty():
                self._batch.append(self._queue.get_nowait())
            self._send()
        self._ended = True
        await asyncio.gather(*self._sending)
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


class Truncated(Struct):
    """Events that are too large lose their objects, and those that still are get lost. Sizes in bytes."""

    delegate: Backend
    max_event_size: int
    max_batch_size: int
    counts: AuditCounts

    async def process(self, events: Sequence[Object]) -> bool:
        batch, size, safe, lost = list[Object](), 0, True, 0
        for whole in events:
            one, length = whole, len(encode(whole)) + 1
            if length > self.max_event_size and one["level"] in ("Request", "RequestResponse"):
                one = _truncated(one)
                length = len(encode(one)) + 1
            if length > self.max_event_size:
                lost += 1
                continue
            if batch and size + length > self.max_batch_size:
                safe = await self.delegate.process(batch) and safe
                batch, size = [], 0
            batch.append(one)
            size += length
        if batch:
            safe = await self.delegate.process(batch) and safe
        if lost:
            self.counts.lost("truncate", lost, "event is too large even after truncating")
        return safe

    async def run(self) -> None:
        await self.delegate.run()

    async def flush(self) -> None:
        await self.delegate.flush()


def _truncated(one: Object) -> Object:
    kept = {key: value for key, value in one.items() if key not in ("requestObject", "responseObject")}
    annotations = {"audit.k8s.io/truncated": "true", **one.get("annotations", {})}
    return {**kept, "annotations": dict(sorted(annotations.items()))}
