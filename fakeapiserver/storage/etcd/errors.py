"""The errors of etcd and of its client, each with one sentence.

Upstream: etcd's api/v3rpc/rpctypes/error.go, whose texts are a part of its protocol: clients recognise errors by them.
"""

from typing import Final

from fakeapiserver.storage.interface import StorageError


class EtcdError(StorageError):
    """The base of all errors of etcd and its client. Its text is one sentence for users. `original` is etcd's own text, which a real API
    server passes on to its clients; it is empty if etcd has sent none."""

    original = ""


class NoConnection(EtcdError):
    """No endpoint can be reached, or none is an etcd with the right certificates. Nothing was sent."""


class UnknownOutcome(EtcdError):
    """The connection broke, or the time was over, after a request was sent: a write may have happened."""


class TimedOut(UnknownOutcome):
    """etcd didn't respond in time."""


class NoQuorum(UnknownOutcome):
    """etcd has no leader, or too few of its members are up."""


class RevisionCompacted(EtcdError):
    """The requested revision has been compacted; `compact_revision` is the oldest one that is left, 0 if etcd doesn't report it."""

    def __init__(self, message: str, compact_revision: int = 0) -> None:
        super().__init__(message)
        self.compact_revision = compact_revision


class FutureRevision(EtcdError):
    """The requested revision doesn't exist yet."""


class TooManyRequests(EtcdError):
    """etcd has too much to do: the request wasn't executed."""


class NoSpace(EtcdError):
    """etcd's database has reached its quota: nothing can be written until it is compacted and the alarm is disarmed."""


class TooLarge(EtcdError):
    """The request is larger than etcd takes."""

    def __init__(self, message: str, original: str = "etcdserver: request is too large") -> None:
        super().__init__(message)
        self.original = original


class LeaseNotFound(EtcdError):
    """The lease has expired, or was revoked."""


class NeedsUser(EtcdError):
    """etcd has authentication enabled, and the client has no user there, or one without the permission."""


class Refused(EtcdError):
    """etcd has refused the request for another reason, which the text names."""


_PREFIX: Final = "etcdserver: "
_BY_TEXT: Final[dict[str, type[EtcdError]]] = {
    "mvcc: required revision has been compacted": RevisionCompacted,
    "mvcc: required revision is a future revision": FutureRevision,
    "mvcc: database space exceeded": NoSpace,
    "request is too large": TooLarge,
    "too many requests": TooManyRequests,
    "requested lease not found": LeaseNotFound,
    "no leader": NoQuorum,
    "leader changed": NoQuorum,
    "unhealthy cluster": NoQuorum,
    "request timed out": NoQuorum,
    "request timed out, possibly due to previous leader failure": NoQuorum,
    "request timed out, possibly due to connection lost": NoQuorum,
    "server stopped": UnknownOutcome,
    "not capable": NoQuorum,
    "user name is empty": NeedsUser,
    "invalid auth token": NeedsUser,
    "permission denied": NeedsUser,
}


def error_of(url: str, code: str, text: str, timeout: float | None = None) -> EtcdError:
    """Returns the error of a call of `url` that ended with gRPC's status `code` and this text. `timeout` is the call's, in seconds."""
    if text.startswith(_PREFIX):
        reason = text.removeprefix(_PREFIX)
        error = _BY_TEXT.get(reason, Refused)(f"etcd at {url}: {reason}")
        error.original = text
        return error
    if code == "DEADLINE_EXCEEDED":
        within = "" if timeout is None else f" within {timeout:.3g} seconds"
        return TimedOut(f"etcd at {url} did not respond{within}")
    if code == "UNIMPLEMENTED":
        return NoConnection(f"{url} is not an etcd of API version 3: {text}")
    if code == "UNAVAILABLE":
        return UnknownOutcome(f"the connection to etcd at {url} was lost: {text}")
    return Refused(f"etcd at {url}: {text} ({code})")
