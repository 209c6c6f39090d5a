"""Where events go: rotated logs, truncation, and flags that can't be."""

import asyncio
import gzip
from pathlib import Path

import pytest

from fakeapiserver.clock import SystemClock
from fakeapiserver.server.audit.backends import Log, LogFile, Rotation, Truncated
from fakeapiserver.server.audit.options import AuditOptions, BatchOptions, LogOptions, TruncateOptions, build

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
        build(options, SystemClock())
    assert str(refused.value) == f"ensureLogFile: {why.format(folder=tmp_path)}"


def test_folders_of_a_log_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "deeper" / "audit.log"
    build(AuditOptions(log=LogOptions(path=str(path))), SystemClock())
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("most", "lines", "says"),
    [(2000, 1, "requestObject"), (500, 1, '"audit.k8s.io/truncated":"true"'), (20, 0, "")],
)
def test_an_event_that_is_too_large_loses_its_objects_first(tmp_path: Path, most: int, lines: int, says: str) -> None:
    path = tmp_path / "audit.log"
    backend = Truncated(Log(LogFile(path, Rotation())), most, MEGABYTE)
    assert asyncio.run(backend.process([EVENT]))
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
        build(AuditOptions(log=options), SystemClock())
    assert str(refused.value) == why


def test_nothing_is_audited_without_a_policy(tmp_path: Path) -> None:
    assert build(AuditOptions(log=LogOptions(path=str(tmp_path / "audit.log"))), SystemClock()) is None
