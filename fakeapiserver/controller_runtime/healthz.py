"""Whether this process lives and is ready (upstream: sigs.k8s.io/controller-runtime/pkg/healthz)."""

import inspect
from collections.abc import Awaitable, Callable, Mapping

from fakeapiserver.controller_runtime.http_server import Receive, Scope, Send, respond

# Raises when something is wrong; what it says is logged, not shown.
Checker = Callable[[], Awaitable[None] | None]


def ping() -> None:
    """Always well."""


class Health:
    """`/healthz` and `/readyz`, each with its checks; one check alone is `/healthz/NAME`, `?verbose` lists them."""

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
        kind, _, name = scope["path"].strip("/").partition("/")
        checks = self._checks.get(kind)
        if checks is None or (name and name not in {**checks, "ping": ping}):
            await respond(send, 404, b"404 page not found\n")
            return
        status, text = await _checked(kind, {name: checks.get(name, ping)} if name else checks or {"ping": ping})
        verbose = b"verbose" in scope["query_string"] or status != 200
        await respond(send, status, text.encode() if verbose else b"ok")


async def _checked(kind: str, checks: Mapping[str, Checker]) -> tuple[int, str]:
    lines, failed = [], False
    for name, check in sorted(checks.items()):
        try:
            result = check()
            if result is not None and inspect.isawaitable(result):
                await result
        except Exception:
            failed = True
            lines.append(f"[-]{name} failed: reason withheld")
        else:
            lines.append(f"[+]{name} ok")
    lines.append(f"{kind} check {'failed' if failed else 'passed'}")
    return (500 if failed else 200), "\n".join(lines) + "\n"
