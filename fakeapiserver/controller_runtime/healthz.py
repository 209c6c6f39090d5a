"""Whether this process lives and is ready (upstream: sigs.k8s.io/controller-runtime/pkg/healthz)."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from urllib.parse import parse_qs

from fakeapiserver.controller_runtime.http_server import Receive, Scope, Send, respond

__all__ = ["Checker", "Health", "ping"]

log = logging.getLogger(__name__)

# Raises when something is wrong: what it says is logged, and shown to who asks for this check alone.
Checker = Callable[[], Awaitable[None] | None]


def ping() -> None:
    """Always well."""


class Health:
    """`/healthz` and `/readyz`, each there when it has checks; one check alone is `/healthz/NAME`. `?verbose` lists them,
    `?exclude=NAME` leaves one out. 200 `ok`, or 500."""

    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Checker]] = {"healthz": {}, "readyz": {}}

    def add_healthz_check(self, name: str, check: Checker) -> None:
        self._checks["healthz"][name] = check

    def add_readyz_check(self, name: str, check: Checker) -> None:
        self._checks["readyz"][name] = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        endpoint, _, name = scope["path"].strip("/").partition("/")
        checks = self._checks.get(endpoint) or {}
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not checks or (name and name not in checks):
            status, text = 404, "404 page not found\n"
        elif name:
            failure = await _failure(checks[name])
            status, text = (200, "ok") if failure is None else (500, f"internal server error: {failure}\n")
        else:
            status, text = await _aggregated(checks, query.get("exclude", ()), verbose="verbose" in query)
        await respond(send, status, text.encode())


async def _aggregated(checks: Mapping[str, Checker], excluded: Collection[str], *, verbose: bool) -> tuple[int, str]:
    lines, failed = [], False
    for name, check in sorted(checks.items()):
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        failure = await _failure(check)
        if failure is not None:
            failed = True
            log.info("healthz check %s failed: %s", name, failure)
        lines.append(f"[+]{name} ok" if failure is None else f"[-]{name} failed: reason withheld")
    if not failed and not verbose:
        return 200, "ok"
    if unknown := [name for name in excluded if name not in checks]:
        names = ",".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    lines.append(f"healthz check {'failed' if failed else 'passed'}")
    return (500 if failed else 200), "\n".join(lines) + "\n"


async def _failure(check: Checker) -> Exception | None:
    try:
        result = check()
        if result is not None and inspect.isawaitable(result):
            await result
    except Exception as error:
        return error
    return None
