"""Tests the backends of audit events: rotated logs, truncation, and invalid flags."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.wait import poll_until
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.filters.audit import backends
from fakeapiserver.server.filters.audit.backends import (
    Batching,
    Buffered,
    IgnoreErrors,
    Log,
    LogFile,
    Rotation,
    StandardOutput,
    Truncated,
    Webhook,
    backups,
    clean_up,
)
from fakeapiserver.server.filters.audit.counts import ERRORS, AuditCounts
from fakeapiserver.server.filters.audit.options import AuditOptions, BatchOptions, LogOptions, TruncateOptions, build
from fakeapiserver.transport.webhook import Endpoint, Response, WebhookError

MEGABYTE = 1024 * 1024
EVENT = {"level": "Request", "requestURI": "/", "requestObject": "x" * 1000}


def test_a_log_that_gets_too_large_is_put_aside(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "audit.log", Rotation(max_size=1, compress=True))
    log.write(b"a" * (MEGABYTE - 1))
    log.write(b"bb")
    log.close()
    (backup,) = tmp_path.glob("audit-*.log.gz")
    assert len(gzip.decompress(backup.read_bytes())) == MEGABYTE - 1
    assert (tmp_path / "audit.log").read_bytes() == b"bb"


def test_a_log_that_is_put_aside_while_others_are_cleaned_up_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = tmp_path / "audit-2026-11-22T13-00-00.000.log"
    aside.write_bytes(b"a")
    listings = iter([[], [aside]])  # it comes after the first look
    monkeypatch.setattr(backends, "backups", lambda path: next(listings))
    backends.clean_up(tmp_path / "audit.log", Rotation(max_size=1))
    assert aside.exists()


def test_what_was_put_aside_has_the_rights_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = LogFile(path, Rotation(max_size=1, compress=True))
    path.chmod(0o640)
    for _ in range(2):
        log.write(b"a" * MEGABYTE)
    log.close()
    assert [file.stat().st_mode & 0o777 for file in (path, *backups(path))] == [0o640, 0o640]


@pytest.mark.parametrize(
    ("rotation", "left"),
    [
        (Rotation(max_backups=0, max_age=0), ["1", "2", "3", "gz 0"]),
        (Rotation(max_backups=2, max_age=0), ["2", "3"]),
        (Rotation(max_backups=3, max_age=0, compress=True), ["gz 1", "gz 2", "gz 3"]),
        (Rotation(max_backups=0, max_age=1), ["3"]),
    ],
)
def test_old_logs_are_removed_by_their_names(tmp_path: Path, rotation: Rotation, left: list[str]) -> None:
    now = datetime.now(UTC)
    for days in range(4):
        stamp = (now - timedelta(days=3 - days, seconds=-60 if days == 3 else 0)).strftime("%Y-%m-%dT%H-%M-%S.000")
        name = f"audit-{stamp}.log"
        (tmp_path / (name if days else f"{name}.gz")).write_bytes(f"{days}".encode())
    others = [tmp_path / name for name in ("audit.log", "audit-mine.log", "audit-2026-11-21T00-00-00.000.txt")]
    for file in others:
        file.touch()
    clean_up(tmp_path / "audit.log", rotation)
    told = [
        f"gz {gzip.decompress(file.read_bytes()).decode() if file.stat().st_size > 1 else file.read_bytes().decode()}"
        if file.suffix == ".gz"
        else file.read_text()
        for file in backups(tmp_path / "audit.log")
    ]
    assert sorted(told) == left
    assert all(file.exists() for file in others)


def test_a_log_that_another_process_has_rotated_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = LogFile(path, Rotation(max_size=1))
    log.write(b"a" * MEGABYTE)
    path.rename(tmp_path / "mine")
    log.write(b"b")
    log.close()
    assert path.read_bytes() == b"b"


def test_an_event_that_is_larger_than_the_log_may_be_is_lost_and_counted(tmp_path: Path) -> None:
    instruments = Instruments()
    counts = AuditCounts(instruments)
    log = Log(LogFile(tmp_path / "audit.log", Rotation(max_size=1)), counts)
    assert not asyncio.run(log.process([{**EVENT, "requestObject": "x" * MEGABYTE}, EVENT]))
    assert instruments.numbers[ERRORS] == {("log",): 1}
    assert len((tmp_path / "audit.log").read_text().splitlines()) == 1


def test_a_line_each_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(Log(StandardOutput(), AuditCounts(Instruments())).process([EVENT, EVENT]))
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [EVENT, EVENT]


def test_a_line_is_written_as_go_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    one = {"requestURI": "/?a=1&b=<>\u2028", "requestObject": msgspec.Raw(b'{"a":"&"}')}
    asyncio.run(Log(LogFile(path, Rotation()), AuditCounts(Instruments())).process([one]))
    line = path.read_text()
    assert line == '{"requestURI":"/?a=1\\u0026b=\\u003c\\u003e\\u2028","requestObject":{"a":"\\u0026"}}\n'


class Receiver:
    """A backend that remembers the sizes of batches; `fails`: it takes nothing."""

    def __init__(self, *, fails: bool = False) -> None:
        self.batches: list[int] = []
        self._fails = fails

    async def process(self, events: Sequence[Object]) -> bool:
        self.batches.append(len(events))
        return not self._fails

    def has_taken(self, batches: int) -> Callable[[], Awaitable[bool]]:
        async def has() -> bool:
            return len(self.batches) >= batches

        return has

    async def run(self) -> None: ...

    async def flush(self) -> None: ...


async def batched(batching: Batching, counts: AuditCounts, *, count: int, at_first: int) -> list[int]:
    """The batches that so many events are sent in: so many of them and what else is sent in a moment, and what is at the end."""
    receiver = Receiver()
    backend = Buffered(receiver, batching, counts)
    running = asyncio.create_task(backend.run())
    await asyncio.sleep(0)
    await backend.process([EVENT] * count)
    await poll_until(receiver.has_taken(at_first), interval=0.001, timeout=60)
    await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    receiver.batches.append(0)  # the end
    await backend.flush()
    await backend.process([EVENT])
    return receiver.batches


@pytest.mark.parametrize(
    ("batching", "batches", "errors"),
    [
        (Batching(10, 3, 30.0), [3, 3, 0, 1], {"buffered": 1}),
        (Batching(10, 3, 0.01), [3, 3, 1, 0], {"buffered": 1}),
        (Batching(10, 1, 0.0), [1, 1, 1, 1, 1, 1, 1, 0], {"buffered": 1}),
        (Batching(10, 3, 0.01, concurrent=True), [3, 3, 1, 0], {"buffered": 1}),
        (Batching(10, 3, 30.0, qps=0.001, burst=1), [3, 0, 3, 1], {"buffered": 1}),
        (Batching(5, 3, 30.0), [3, 0, 2], {"buffered": 3}),
    ],
)
def test_events_are_sent_in_batches_and_the_rest_at_the_end(
    batching: Batching, batches: list[int], errors: dict[str, int]
) -> None:
    instruments = Instruments()
    counts = AuditCounts(instruments)
    assert asyncio.run(batched(batching, counts, count=7, at_first=batches.index(0))) == batches
    assert {plugin: lost for (plugin,), lost in instruments.numbers[ERRORS].items()} == errors


class Answering:
    """A client whose first calls fail with the given errors, and whose later calls succeed."""

    def __init__(self, errors: list[WebhookError]) -> None:
        self.errors = errors

    async def send(self, endpoint: Endpoint, body: bytes, timeout: float) -> Response:
        if self.errors:
            raise self.errors.pop(0)
        return Response(200)


DOWN = WebhookError("connection refused")
LATER = WebhookError("later", 429, 0)


@pytest.mark.parametrize(
    ("errors", "lost"),
    [
        ([], 0),
        ([DOWN, WebhookError("broken", 500), WebhookError("bad", 400), LATER], 0),
        ([LATER] * 10, 0),  # a server that sends Retry-After is called again without a step of the back-off
        ([DOWN] * 4, 0),
        ([DOWN] * 5, 2),
    ],
)
def test_a_webhook_is_asked_again_and_again(
    errors: list[WebhookError], lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instruments = Instruments()
    counts = AuditCounts(instruments)
    webhook = Webhook(Endpoint("http://127.0.0.1:1", "127.0.0.1", 1, plain=True), 0.0, counts)
    monkeypatch.setattr(webhook, "_client", Answering(list(errors)))
    assert asyncio.run(webhook.process([EVENT, EVENT])) == (not lost)
    assert instruments.numbers[ERRORS]["webhook",] == lost


def test_only_a_strict_log_refuses_requests() -> None:
    assert not asyncio.run(Receiver(fails=True).process([EVENT]))
    assert asyncio.run(IgnoreErrors(Receiver(fails=True)).process([EVENT]))


def test_a_log_is_continued(tmp_path: Path) -> None:
    for text in (b"one\n", b"two\n"):
        log = LogFile(tmp_path / "audit.log", Rotation())
        log.write(text)
        log.close()
    assert (tmp_path / "audit.log").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("policy", [True, False])
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("{folder}/file/audit.log", "mkdir {folder}/file: not a directory"),
        ("{folder}/file/deep/audit.log", "mkdir {folder}/file: not a directory"),
        ("{folder}", "open {folder}: is a directory"),
        ("/proc/nope/audit.log", "mkdir /proc/nope: no such file or directory"),
        ("/proc/audit.log", "open /proc/audit.log: no such file or directory"),
    ],
)
def test_a_log_that_cant_be_written_is_refused(tmp_path: Path, path: str, why: str, policy: bool) -> None:
    (tmp_path / "file").touch()
    rules = tmp_path / "policy.yaml"
    rules.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    options = AuditOptions(rules if policy else None, LogOptions(path=path.format(folder=tmp_path)))
    with pytest.raises(ValueError, match="ensureLogFile") as refused:
        build(options, SystemClock(), AuditCounts(Instruments()))
    assert str(refused.value) == f"ensureLogFile: {why.format(folder=tmp_path)}"


def test_folders_of_a_log_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "deeper" / "audit.log"
    build(AuditOptions(log=LogOptions(path=str(path))), SystemClock(), AuditCounts(Instruments()))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("most", "lines", "says"),
    [(2000, 1, "requestObject"), (500, 1, '"audit.k8s.io/truncated":"true"'), (20, 0, "")],
)
def test_an_event_that_is_too_large_loses_its_objects_first(tmp_path: Path, most: int, lines: int, says: str) -> None:
    path = tmp_path / "audit.log"
    instruments = Instruments()
    counts = AuditCounts(instruments)
    backend = Truncated(Log(LogFile(path, Rotation()), counts), most, MEGABYTE, counts)
    assert asyncio.run(backend.process([EVENT]))
    assert instruments.numbers[ERRORS]["truncate",] == 1 - lines
    assert len(path.read_text().splitlines()) == lines
    assert says in path.read_text()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            LogOptions(path="-", mode="fast"),
            'invalid audit log mode fast, allowed modes are "batch,blocking,blocking-strict"',
        ),
        (LogOptions(path="-", format="xml"), 'invalid audit log format xml, allowed formats are "legacy,json"'),
        (LogOptions(path="-", maxage=-1), "--audit-log-maxage -1 can't be a negative number"),
        (
            LogOptions(path="-", mode="batch", batch=BatchOptions(buffer_size=0)),
            "invalid audit batch log buffer size 0, must be a positive number",
        ),
        (
            LogOptions(path="-", truncate=TruncateOptions(max_batch_size=1)),
            "invalid audit truncate log max batch size 1, must be greater than max event size (102400)",
        ),
    ],
)
def test_flags_that_cant_be_are_refused(options: LogOptions, why: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared
        build(AuditOptions(log=options), SystemClock(), AuditCounts(Instruments()))
    assert str(refused.value) == why


def test_nothing_is_audited_without_a_policy(tmp_path: Path) -> None:
    options = AuditOptions(log=LogOptions(path=str(tmp_path / "audit.log")))
    assert build(options, SystemClock(), AuditCounts(Instruments())) is None
