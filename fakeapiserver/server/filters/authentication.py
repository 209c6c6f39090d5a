"""The filter that finds out who sent a request.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/authentication.go.
"""

from time import perf_counter

from fakeapiserver.apimachinery.errors import StatusError, new_unauthorized
from fakeapiserver.auth.interfaces import Authenticator, Credentials, UserInfo
from fakeapiserver.auth.measures import AuthenticationMetrics
from fakeapiserver.endpoints.request import IN_PROCESS_USER, Request


async def authenticate(request: Request, authenticator: Authenticator, metrics: AuthenticationMetrics) -> UserInfo:
    """Returns the user of a request; callers in this process have set theirs. Raises StatusError 401."""
    own: UserInfo | None = request.scope.get(IN_PROCESS_USER)
    if own is not None:
        return own
    start = perf_counter()
    try:
        user = await authenticator.authenticate(credentials(request))
        if user is None:
            raise new_unauthorized()
    except StatusError as error:
        metrics.refused(error, perf_counter() - start)
        raise
    metrics.succeeded(user.name, perf_counter() - start)
    return user


def credentials(request: Request) -> Credentials:
    """Returns what authenticators may look at: the certificates of the connection, and the headers."""
    tls = request.scope.get("extensions", {}).get("tls")
    chain = tls.get("client_cert_der", ()) if tls else ()
    authorization = request.first_headers.get(b"authorization", b"").decode("utf-8", "surrogateescape")
    if chain:
        return Credentials(
            authorization, chain[0], tuple(chain[1:]), request.headers, (), request.path, request.warnings
        )
    return Credentials(authorization, b"", (), request.headers, (), request.path, request.warnings)
