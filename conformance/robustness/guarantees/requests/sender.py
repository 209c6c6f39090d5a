"""A client that sends anything, and judges the answers: no failure of the server, no silence."""

import time
from collections import Counter
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final

from msgspec import Struct

from conformance.robustness.client import Credentials

# Seconds without an answer after which a server hangs: kube-apiserver's deadline is 60.
_HANGS: Final = 65.0
# 504: a revision that doesn't exist yet, or the request's deadline. 501: a verb or coding that HTTP has and Kubernetes hasn't.
_ALLOWED: Final = {501, 504}
# Texts of kube-apiserver's own 5xx answers: of etcd, of backends, and to an apply of values of wrong types.
_UPSTREAM: Final = (
    b"etcdserver: request is too large",
    b"failed calling webhook",
    b"no endpoints available for service",
    b"error trying to reach service",
    b"no preferred addresses found",
    b"failed to create typed patch object",
    b"failed to convert new object",
)


class Answer(Struct, frozen=True):
    status: int
    body: bytes
    content_type: str


class Sender:
    """`statuses` counts the answers. `problems` has the failures, at most a few of each kind."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._connection: HTTPConnection | None = None
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []

    def send(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer | None:
        """Returns None if the server has closed the connection, which is a problem."""
        for attempt in range(2):
            is_new = self._connection is None
            try:
                return self._sent(method, target, body, {**self._credentials.headers, **(headers or {})})
            except (OSError, HTTPException) as error:
                self.close()
                if is_new or attempt:
                    self.problems.append(f"{method} {target[:200]}: {error!r}; body {(body or b'')[:300]!r}")
                    return None
        return None

    def _sent(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if self._connection is None:
            self._connection = HTTPSConnection(
                self._credentials.address, context=self._credentials.context, timeout=_HANGS
            )
        began = time.monotonic()
        self._connection.request(method, target, body, dict(headers))
        response = self._connection.getresponse()
        answer = Answer(response.status, response.read(), response.headers.get("Content-Type", ""))
        self.statuses[answer.status] += 1
        if (
            answer.status >= 500
            and answer.status not in _ALLOWED
            and not any(text in answer.body for text in _UPSTREAM)
        ):
            self.problems.append(
                f"{method} {target[:300]}: {answer.status} {answer.body[:300]!r}; body {(body or b'')[:500]!r}"
            )
        if time.monotonic() - began > _HANGS:
            self.problems.append(f"{method} {target[:300]}: no answer within {_HANGS:.0f} s")
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def counted(senders: list[Sender]) -> str:
    """Returns the number of answers of each class, e.g. "2xx 120, 4xx 31"."""
    classes: Counter[int] = Counter()
    for sender in senders:
        for status, count in sender.statuses.items():
            classes[status // 100] += count
    return ", ".join(f"{first}xx {count:,}" for first, count in sorted(classes.items()))
