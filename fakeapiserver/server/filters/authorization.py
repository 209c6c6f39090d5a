"""The filter that asks whether a user may do what a request asks for.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/authorization.go.
"""

from time import perf_counter
from typing import Final

from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, UserInfo
from fakeapiserver.auth.measures import AuthorizationMetrics
from fakeapiserver.auth.selectors import Selectors
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.request_info import RequestInfo

_DECISION: Final = "authorization.k8s.io/decision"
_REASON: Final = "authorization.k8s.io/reason"


async def authorize(request: Request, authorizer: Authorizer, metrics: AuthorizationMetrics) -> None:
    """Returns if the request is allowed. Raises StatusError 403, or EvaluationError if no authorizer could decide."""
    attributes = attributes_of(request.info, request.user, selectors(request))
    start = perf_counter()
    try:
        decision, reason = await authorizer.authorize(attributes)
    except EvaluationError:
        metrics.failed(perf_counter() - start)
        if request.audit is not None:
            request.audit.annotate(_REASON, "internal error")
        raise
    metrics.decided(decision, perf_counter() - start)
    if request.audit is not None:
        request.audit.annotate(_DECISION, "allow" if decision is Decision.ALLOW else "forbid")
        request.audit.annotate(_REASON, reason)
    if decision is not Decision.ALLOW:
        raise forbidden_error(attributes, reason)


def selectors(request: Request) -> Selectors | None:
    """Returns the request's selectors, for authorizers; None if it has none."""
    if not request.query or request.info.verb not in ("list", "watch", "deletecollection"):
        return None
    field_selector, label_selector = request.param("fieldSelector"), request.param("labelSelector")
    return Selectors(field_selector, label_selector) if field_selector or label_selector else None


def attributes_of(info: RequestInfo, user: UserInfo, selected: Selectors | None = None) -> Attributes:
    """Returns what authorizers and the audit policy decide by."""
    return Attributes(
        user,
        info.verb,
        info.path,
        info.resource_request,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        info.name,
        selected,
    )
