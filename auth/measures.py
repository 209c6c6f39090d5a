"""The metrics of authentication and authorization, of the token cache and of authorization webhooks.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/metrics.go, pkg/authorization/metrics/metrics.go,
pkg/authentication/token/cache/stats.go, plugin/pkg/authorizer/webhook/metrics/metrics.go,
pkg/authorization/cel/metrics.go.
"""

from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.instruments import Family, Instruments, exponential
from fakeapiserver.auth.interfaces import Decision

_WEBHOOK: Final = "apiserver_authorization_webhook"
_MATCH: Final = "apiserver_authorization_match_condition"
# prometheus' own.
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

_ATTEMPTS: Final = exponential(0.001, 2, 15)

USERS: Final = Family(
    "authenticated_user_requests_total", "Requests of users who were authenticated, by name", ("username",)
)
AUTHENTICATION_SECONDS: Final = Family(
    "authentication_duration_seconds", "Seconds that attempts took, by result", ("result",), _ATTEMPTS
)
AUTHORIZATION_SECONDS: Final = Family(
    "authorization_duration_seconds", "Seconds that authorizing took, by result", ("result",), _ATTEMPTS
)
DECISIONS: Final = Family(
    "apiserver_authorization_decisions_total",
    "What authorizers decided, by type, name and decision",
    ("decision", "name", "type"),
)
TOKEN_CACHE_REQUESTS: Final = Family(
    "authentication_token_cache_request_total", "Tokens that were known already, and those that weren't", ("status",)
)
TOKEN_CACHE_FETCHES: Final = Family(
    "authentication_token_cache_fetch_total", "Tokens that were looked for", ("status",)
)
EVALUATIONS: Final = Family(f"{_WEBHOOK}_evaluations_total", "Questions to authorization webhooks", ("name", "result"))
SECONDS: Final = Family(
    f"{_WEBHOOK}_duration_seconds", "Seconds that authorization webhooks took", ("name", "result"), _BOUNDS
)
FAILED_OPEN: Final = Family(
    f"{_WEBHOOK}_evaluations_fail_open_total", "Failures that left the decision to others", ("name", "result")
)
CONDITION_SECONDS: Final = Family(
    f"{_MATCH}_evaluation_seconds",
    "Seconds that match conditions took",
    ("name", "type"),
    (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
)
CONDITION_EXCLUSIONS: Final = Family(
    f"{_MATCH}_exclusions_total", "Questions that match conditions kept from webhooks", ("name", "type")
)
CONDITION_ERRORS: Final = Family(
    f"{_MATCH}_evaluation_errors_total", "Match conditions that could not be evaluated", ("name", "type")
)
# Users who are counted by name; all others are counted by whether their names look like an address.
_KNOWN_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)
_RESULTS: Final = {Decision.ALLOW: "allowed", Decision.DENY: "denied", Decision.NO_OPINION: "no-opinion"}


class AuthenticationMetrics:
    """Counts authenticated users, failed attempts, and the time that authentication takes."""

    def __init__(self, instruments: Instruments) -> None:
        self._users = instruments.counter(USERS)
        self._success, self._failure, self._error = (
            instruments.histogram(AUTHENTICATION_SECONDS, result) for result in ("success", "failure", "error")
        )

    def succeeded(self, name: str, seconds: float) -> None:
        self._users[name if name in _KNOWN_USERS else "email_id" if "@" in name else "other",] += 1
        self._success.observe(seconds)

    def refused(self, error: StatusError, seconds: float) -> None:
        """A credential that fails is an error; to have none where one is needed is a failure."""
        (self._failure if error.__cause__ is None else self._error).observe(seconds)


class AuthorizationMetrics:
    """Counts the results of authorization and the time that it takes."""

    def __init__(self, instruments: Instruments) -> None:
        self._results = {
            decision: instruments.histogram(AUTHORIZATION_SECONDS, result) for decision, result in _RESULTS.items()
        }
        self._errors = instruments.histogram(AUTHORIZATION_SECONDS, "error")

    def decided(self, decision: Decision, seconds: float) -> None:
        self._results[decision].observe(seconds)

    def failed(self, seconds: float) -> None:
        """Counts a request for which no authorizer could decide."""
        self._errors.observe(seconds)
