"""Defines what the handler chain needs of auditing, and the auditor of a server without an audit policy, which audits nothing."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Protocol

from fakeapiserver.endpoints.request import Request

_NOTHING: Final = nullcontext()


class Auditing(Protocol):
    def failure(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Records a request that is refused before it has a user (upstream: withFailedRequestAudit, WithFailedAuthenticationAudit)."""

    def events(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Records a request of a known user, from its arrival to the end of its answer (upstream: WithAudit). Raises Answered
        with 500 if the event can't be stored and the backend demands it, and with a refusal in place of StatusError.
        """


class NoAuditing:
    def failure(self, request: Request) -> AbstractAsyncContextManager[None]:
        return _NOTHING

    def events(self, request: Request) -> AbstractAsyncContextManager[None]:
        return _NOTHING
