"""The metrics of the token cache and of authorization webhooks.

Upstream: k8s.io/apiserver/pkg/authentication/token/cache/stats.go, plugin/pkg/authorizer/webhook/metrics/metrics.go,
pkg/authorization/cel/metrics.go.
"""

from typing import Final

from fakeapiserver.apimachinery.instruments import Family

_WEBHOOK: Final = "apiserver_authorization_webhook"
_MATCH: Final = "apiserver_authorization_match_condition"
# prometheus' own.
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

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
