"""The interfaces of authenticators and authorizers.

Upstream: k8s.io/apiserver/pkg/authentication/{authenticator,user}, pkg/authorization/authorizer.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.selectors import Selectors


class UserInfo(Struct, frozen=True):
    """The user of a request (upstream: user.Info)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Credentials(Struct):
    """The credentials in a request.

    `authorization` is the first Authorization header; `peer_certificate` the client's leaf certificate as DER
    bytes (unverified: the x509
    authenticator checks it), `peer_chain` the certificates after it. `audiences` are those that a token must be
    for, by default the server's
    own. `path` is the request's; `warnings` go into the response.
    """

    authorization: str = ""
    peer_certificate: bytes = b""
    peer_chain: tuple[bytes, ...] = ()
    headers: Sequence[tuple[bytes, bytes]] = ()
    audiences: tuple[str, ...] = ()
    path: str = ""
    warnings: list[str] = field(default_factory=list)


class Response(Struct, frozen=True):
    """The user of a token, and the requested audiences that it is for (upstream: authenticator.Response).

    `warnings` go to the client.
    """

    user: UserInfo
    audiences: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class RefusedError(ValueError):
    """A token is of a method's own, but not good; the arguments are upstream's reasons, without anything that is secret."""


class Authenticator(Protocol):
    """Returns the user; None when the credentials are not of this method; raises StatusError 401 when they are and fail.
    Must not block: what needs I/O is awaited."""

    async def authenticate(self, credentials: Credentials) -> UserInfo | None: ...


class TokenAuthenticator(Protocol):
    """Knows bearer tokens of one method. None when the token is not one of its own, so that the next method may know it;
    raises RefusedError when it is its own and fails. `audiences` are those that it must be for."""

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None: ...


class TokenReviewer(Protocol):
    """Knows tokens of every method (a TokenReview asks)."""

    async def review(self, token: str, audiences: Sequence[str]) -> Response:
        """The user and audiences of a token. RefusedError with the reasons of all methods."""


class Decision(Enum):
    __hash__ = object.__hash__  # an enumeration's own is not free, and each request's decision is counted by it

    ALLOW = "Allow"
    DENY = "Deny"
    NO_OPINION = "NoOpinion"


class Attributes(Struct):
    """The action that a request wants to perform (upstream: authorizer.Attributes).

    Never changed; not frozen, because frozen Structs are expensive to create, and each request creates one.
    """

    user: UserInfo
    verb: str
    path: str = ""
    resource_request: bool = False
    api_group: str = ""
    api_version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    selectors: Selectors | None = None

    @property
    def is_read_only(self) -> bool:
        return self.verb in ("get", "list", "watch")


class EvaluationError(Exception):
    """An authorizer failed.

    `decision` is its decision all the same: after NO_OPINION the next authorizer is called, DENY ends the
    request. If no authorizer allows the
    request, the response is a 500 with the text.
    """

    def __init__(self, text: str, decision: Decision = Decision.NO_OPINION, reason: str = "") -> None:
        super().__init__(text)
        self.decision = decision
        self.reason = reason


class Authorizer(Protocol):
    """Returns its decision and the reason shown in a 403, or raises EvaluationError. The first ALLOW or DENY of the union wins."""

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]: ...


@runtime_checkable
class RuleResolver(Protocol):
    """Lists what a user may do in a namespace (SelfSubjectRulesReview): resource rules, non-resource rules, incomplete, error."""

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]: ...


class RuleAuthorizer(Authorizer, RuleResolver, Protocol):
    """Decides, and lists what it would allow."""


__all__ = [
    "Attributes",
    "Authenticator",
    "Authorizer",
    "Credentials",
    "Decision",
    "EvaluationError",
    "RefusedError",
    "Response",
    "RuleAuthorizer",
    "RuleResolver",
    "StatusError",
    "TokenAuthenticator",
    "TokenReviewer",
    "UserInfo",
]
