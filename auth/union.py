"""Authenticates a request: asks each method in turn; the first success wins.

Upstream: k8s.io/apiserver/pkg/authentication/request/union/union.go,
k8s.io/kubernetes/pkg/kubeapiserver/authenticator/config.go.
The order is front proxy, certificate, bearer token, anonymous. A refused credential does not stop the methods after it, but it
does rule out anonymous: a valid certificate with a bad token is the certificate's user, a bad certificate alone is a 401.

Nothing is cached here: methods whose checks are expensive have caches of their own.
"""

import logging
from collections.abc import Sequence

from fakeapiserver.apimachinery.errors import StatusError, new_unauthorized
from fakeapiserver.auth.group import add_authenticated
from fakeapiserver.auth.interfaces import Authenticator, Credentials, UserInfo

log = logging.getLogger(__name__)


class Union:
    """`authenticators` in order; `anonymous` (None when switched off) is asked when no credential was presented."""

    def __init__(self, authenticators: Sequence[Authenticator], anonymous: Authenticator | None = None) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    async def authenticate(self, credentials: Credentials) -> UserInfo:
        """The user; raises StatusError 401 when every credential presented was refused, or none was and anonymous is off."""
        refusal: StatusError | None = None
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(credentials)
            except StatusError as error:
                refusal = refusal or error
                log.info("unable to authenticate the request: %s", error.__cause__ or error)
                continue
            if user is not None:
                return add_authenticated(user)
        if refusal is not None:
            raise refusal
        user = await self._anonymous.authenticate(credentials) if self._anonymous is not None else None
        if user is None:
            raise new_unauthorized()
        return user
