"""The flags --audit-*: what they must be, and what is built of them.

Upstream: k8s.io/apiserver/pkg/server/options/audit.go.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.clock import Clock
from fakeapiserver.server.filters.audit import auditor
from fakeapiserver.server.filters.audit import backends as backends_module
from fakeapiserver.server.filters.audit import policy as policy_module
from fakeapiserver.server.filters.audit.counts import AuditCounts
from fakeapiserver.server.options import webhook_clients
from fakeapiserver.transport import client_config

if TYPE_CHECKING:
    from fakeapiserver.server.filters.audit.auditor import Auditor
    from fakeapiserver.server.filters.audit.backends import Backend

_MODES: Final = ("batch", "blocking", "blocking-strict")
_FORMATS: Final = ("legacy", "json")
_VERSION: Final = "audit.k8s.io/v1"


class BatchOptions(Struct):
    """Field names are the ends of the flags' names. `max_wait` in seconds."""

    buffer_size: int = 10000
    max_size: int = 400
    max_wait: float = 30.0
    throttle_enable: bool = True
    throttle_qps: float = 10.0
    throttle_burst: int = 15


class TruncateOptions(Struct):
    """Sizes in bytes."""

    enabled: bool = False
    max_batch_size: int = 10 * 1024 * 1024
    max_event_size: int = 100 * 1024


class LogOptions(Struct):
    """`path` is empty without a log, `-` for standard output."""

    path: str = ""
    format: str = "json"
    version: str = _VERSION
    mode: str = "blocking"
    maxage: int = 366  # days
    maxbackup: int = 100
    maxsize: int = 100  # megabytes
    compress: bool = False
    # A log gains nothing by batches.
    batch: BatchOptions = field(default_factory=lambda: BatchOptions(max_size=1, max_wait=0.0, throttle_enable=False))
    truncate: TruncateOptions = field(default_factory=TruncateOptions)


class WebhookOptions(Struct):
    """`initial_backoff` in seconds."""

    config_file: str = ""
    version: str = _VERSION
    mode: str = "batch"
    initial_backoff: float = 10.0
    batch: BatchOptions = field(default_factory=BatchOptions)
    truncate: TruncateOptions = field(default_factory=TruncateOptions)


class AuditOptions(Struct):
    policy_file: Path | None = None
    log: LogOptions = field(default_factory=LogOptions)
    webhook: WebhookOptions = field(default_factory=WebhookOptions)


def build(options: AuditOptions, clock: Clock, counts: AuditCounts) -> "Auditor | None":
    """Returns the auditor, or None without a policy or a backend. Raises ValueError, OSError."""
    problems = [*_log_problems(options.log), *_webhook_problems(options.webhook)]
    if problems:
        raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    if options.policy_file is None:
        if options.log.path not in ("", "-"):
            _ensure_log_file(Path(options.log.path))  # which upstream does without a policy, too
        return None

    policy = policy_module.load_policy(options.policy_file)
    backends = [*_log_backends(options.log, counts), *_webhook_backends(options.webhook, clock, counts)]
    return auditor.Auditor(policy, backends, clock, counts) if backends else None


def _log_backends(options: LogOptions, counts: AuditCounts) -> "Iterator[Backend]":
    if not options.path:
        return
    out: backends_module.LogFile | backends_module.StandardOutput
    if options.path == "-":
        out = backends_module.StandardOutput()
    else:
        rotation = backends_module.Rotation(options.maxsize, options.maxage, options.maxbackup, options.compress)
        _ensure_log_file(Path(options.path))
        out = backends_module.LogFile(Path(options.path), rotation)
    yield _wrapped(
        backends_module.Log(out, counts, legacy=options.format == "legacy"), options, counts, concurrent=False
    )


def _ensure_log_file(path: Path) -> None:
    """Makes it, with the folders that it needs. ValueError."""
    try:
        _make_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600))
    except OSError as error:
        operation = "open" if str(error.filename) == str(path) else "mkdir"
        raise ValueError(
            f"ensureLogFile: {operation} {error.filename}: {os.strerror(error.errno or 0).lower()}"
        ) from None


def _make_folder(path: Path) -> None:
    """Creates a folder with its parents; an error names the first one that fails (upstream: os.MkdirAll)."""
    if path.is_dir():
        return
    if path.parent != path:
        _make_folder(path.parent)
    if path.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    path.mkdir(mode=0o700)


def _webhook_backends(options: WebhookOptions, clock: Clock, counts: AuditCounts) -> "Iterator[Backend]":
    if not options.config_file:
        return

    path = Path(options.config_file)
    try:
        endpoint = client_config.load_kubeconfig(path)
        credentials = webhook_clients.credentials_of(path, endpoint, clock)
    except (OSError, ValueError) as error:
        raise ValueError(f"initializing audit webhook: {error}") from None
    webhook = backends_module.Webhook(endpoint, options.initial_backoff, counts, credentials)
    yield _wrapped(webhook, options, counts, concurrent=True)


def _wrapped(
    backend: "Backend", options: LogOptions | WebhookOptions, counts: AuditCounts, *, concurrent: bool
) -> "Backend":
    if options.mode == "batch":
        batch = options.batch
        qps = batch.throttle_qps if batch.throttle_enable else None
        limits = backends_module.Batching(
            batch.buffer_size, batch.max_size, batch.max_wait, qps, batch.throttle_burst, concurrent
        )
        backend = backends_module.Buffered(backend, limits, counts)
    elif options.mode == "blocking":
        backend = backends_module.IgnoreErrors(backend)
    truncate = options.truncate
    if not truncate.enabled:
        return backend
    return backends_module.Truncated(backend, truncate.max_event_size, truncate.max_batch_size, counts)


# ----------------------------------------------------------------- validation


def _log_problems(options: LogOptions) -> Iterator[str]:
    if not options.path:
        return
    yield from _batch_problems("log", options.mode, options.batch)
    yield from _truncate_problems("log", options.truncate)
    yield from _version_problems(options.version)
    if options.format not in _FORMATS:
        yield f"invalid audit log format {options.format}, allowed formats are {go_quote(','.join(_FORMATS))}"
    for name in ("maxage", "maxbackup", "maxsize"):
        if (value := getattr(options, name)) < 0:
            yield f"--audit-log-{name} {value} can't be a negative number"


def _webhook_problems(options: WebhookOptions) -> Iterator[str]:
    if not options.config_file:
        if options.version.count("/") > 1:  # which upstream reads in any case
            yield from _version_problems(options.version)
    else:
        yield from _batch_problems("webhook", options.mode, options.batch)
        yield from _truncate_problems("webhook", options.truncate)
        yield from _version_problems(options.version)


def _batch_problems(plugin: str, mode: str, batch: BatchOptions) -> Iterator[str]:
    """The first one."""
    if mode not in _MODES:
        yield f"invalid audit {plugin} mode {mode}, allowed modes are {go_quote(','.join(_MODES))}"
        return
    if mode != "batch":
        return
    values: list[tuple[str, float]] = [("buffer size", batch.buffer_size), ("max batch size", batch.max_size)]
    if batch.throttle_enable:
        values += [("throttle QPS", batch.throttle_qps), ("throttle burst", batch.throttle_burst)]
    for name, value in values:
        if value <= 0:
            yield f"invalid audit batch {plugin} {name} {value:g}, must be a positive number"
            return


def _truncate_problems(plugin: str, options: TruncateOptions) -> Iterator[str]:
    if options.max_event_size <= 0:
        yield (f"invalid audit truncate {plugin} max event size {options.max_event_size}, must be a positive number")
    elif options.max_batch_size < options.max_event_size:
        yield (
            f"invalid audit truncate {plugin} max batch size {options.max_batch_size}, must be greater than "
            f"max event size ({options.max_event_size})"
        )


def _version_problems(version: str) -> Iterator[str]:
    if version.count("/") > 1:
        yield f"unexpected GroupVersion string: {version}"
    elif version != _VERSION:
        yield f'invalid group version, allowed versions are ["{_VERSION}"]'
