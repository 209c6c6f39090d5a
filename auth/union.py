"""Who a request comes from: every method in turn, the first success wins.

Upstream: k8s.io/apiserver/pkg/authentication/request/union/union.go, pkg/authentication/group,
k8s.io/kubernetes/pkg/kubeapiserver/authenticator/config.go.
The order is certificate, bearer token, anonymous. A refused credential does not stop the methods after it, but it does rule out
anonymous: a valid certificate with a bad token is the certificate's user, a bad certificate alone is a 401.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError, new_unauthorized
from fakeapiserver.auth.interfaces import Authenticator, Credentials, UserInfo
from fakeapiserver.clock import Clock, SystemClock

_AUTHENTICATED: Final = "system:authenticated"
_SETTLED_GROUPS: Final = frozenset({_AUTHENTICATED, "system:unauthenticated"})
# Upstream remembers a good token for 10 s too (CacheTokenSuccessTTL).
_KEEP_SECONDS: Final = 10.0
_CACHE_SIZE: Final = 1024


class Union:
    """`authenticators` in order; `anonymous` (None when switched off) is asked when no credential was presented. `remember`
    must be False when a method reads other headers than Authorization (a front proxy's): it is then asked every time."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        anonymous: Authenticator | None = None,
        clock: Clock | None = None,
        remember: bool = True,
    ) -> None:
        self._remembers = remember
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous
        self._monotonic = (clock or SystemClock()).monotonic
        self._known: dict[tuple[str, bytes, tuple[str, ...]], tuple[float, UserInfo]] = {}

    def remembered(self, credentials: Credentials) -> UserInfo | None:
        """The user found for the same credentials in the last 10 s, without awaiting anything; None when there is none."""
        known = self._known.get((credentials.authorization, credentials.peer_certificate, credentials.audiences))
        return known[1] if known is not None and known[0] > self._monotonic() else None

    async def authenticate(self, credentials: Credentials) -> UserInfo:
        """The user; raises StatusError 401 when every credential presented was refused, or none was and anonymous is off."""
        user = self.remembered(credentials)
        if user is not None:
            return user
        user = await self._first(credentials)
        if user is not None:
            user = add_authenticated(user)
            self._remember(credentials, user)
            return user
        user = await self._anonymous.authenticate(credentials) if self._anonymous else None
        if user is None:
            raise new_unauthorized()
        return user

    async def _first(self, credentials: Credentials) -> UserInfo | None:
        refusal: StatusError | None = None
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(credentials)
            except StatusError as error:
                refusal = refusal or error
                continue
            if user is not None:
                return user
        if refusal is not None:
            raise refusal
        return None

    def _remember(self, credentials: Credentials, user: UserInfo) -> None:
        if not self._remembers:
            return
        if len(self._known) >= _CACHE_SIZE:
            self._known.pop(next(iter(self._known)))
        key = (credentials.authorization, credentials.peer_certificate, credentials.audiences)
        self._known[key] = (self._monotonic() + _KEEP_SECONDS, user)


def add_authenticated(user: UserInfo) -> UserInfo:
    """With the group of everyone who is somebody, unless the method has already said which of the two groups applies."""
    if user.name == "system:anonymous" or not _SETTLED_GROUPS.isdisjoint(user.groups):
        return user
    return replace(user, groups=(*user.groups, _AUTHENTICATED))
