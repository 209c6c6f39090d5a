"""Asks another server by SubjectAccessReview.

Upstream: k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go.
"""

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.serializer.type_meta import boolean_field, text_field
from fakeapiserver.auth.interfaces import Attributes, Decision, EvaluationError, UserInfo
from fakeapiserver.auth.measures import (
    CONDITION_ERRORS,
    CONDITION_EXCLUSIONS,
    CONDITION_SECONDS,
    EVALUATIONS,
    FAILED_OPEN,
    SECONDS,
)
from fakeapiserver.clock import Clock
from fakeapiserver.transport.client_config import TimedOut

_CACHE_SIZE: Final = 8192
# Requests with more than this under the client's control are not remembered: it could fill the memory.
_MAX_REMEMBERED: Final = 10_000
_UNSUPPORTED: Final = "webhook authorizer does not support user rule resolution"
_BOTH: Final = "webhook subject access review returned both allow and deny response"

# POSTs a review and returns the answer's object; ValueError and OSError with client-go's text.
Post = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of an authorization webhook.

    `version` is that of SubjectAccessReview; the times are seconds, 0 caches nothing; `on_error` is the decision
    when the webhook or a
    condition fails; metrics have its `name`.
    """

    version: str = "v1beta1"
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    on_error: Decision = Decision.NO_OPINION
    name: str = "default"


class Webhook:
    """Authorizes by a webhook. `matches` decides which requests it is called for; it raises on errors."""

    def __init__(
        self,
        post: Post,
        settings: Settings,
        clock: Clock,
        matches: Callable[[Mapping[str, Any]], bool] | None = None,
        instruments: Instruments | None = None,
    ) -> None:
        self._instruments = instruments or Instruments()
        self._post = post
        self._settings = settings
        self._monotonic = clock.monotonic
        self._matches = matches
        self._answers: OrderedDict[str, tuple[float, Mapping[str, Any]]] = OrderedDict()

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        spec = review_spec(attributes)
        if self._matches is not None:
            labels, start = (self._settings.name, "Webhook"), perf_counter()
            try:
                matches = self._matches(spec)
            except Exception as error:
                self._instruments.count(CONDITION_ERRORS, *labels)
                raise EvaluationError(str(error), self._settings.on_error) from error
            finally:
                self._instruments.observe(CONDITION_SECONDS, perf_counter() - start, *labels)
            if not matches:
                self._instruments.count(CONDITION_EXCLUSIONS, *labels)
                return Decision.NO_OPINION, ""
        status = await self._status(spec, attributes)
        reason = status.get("reason") or ""
        allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
        if allowed and denied:
            raise EvaluationError(_BOTH, Decision.DENY, reason)
        return (Decision.DENY if denied else Decision.ALLOW if allowed else Decision.NO_OPINION), reason

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        return [], [], True, _UNSUPPORTED

    async def _status(self, spec: dict[str, Any], attributes: Attributes) -> Mapping[str, Any]:
        key = json.dumps(spec, sort_keys=True)
        known = self._answers.get(key)
        if known is not None and known[0] > self._monotonic():
            self._answers.move_to_end(key)
            return known[1]
        review = {
            "kind": "SubjectAccessReview",
            "apiVersion": f"authorization.k8s.io/{self._settings.version}",
            "metadata": {},
            "spec": spec if self._settings.version == "v1" else _old_spec(spec),
            "status": {"allowed": False},
        }
        result, start = "success", perf_counter()
        try:
            status = _checked((await self._post(review)).get("status") or {})
        except (ValueError, OSError) as error:
            result = "timeout" if isinstance(error, TimedOut) else "error"
            if self._settings.on_error is Decision.NO_OPINION:
                self._instruments.count(FAILED_OPEN, self._settings.name, result)
            raise EvaluationError(str(error), self._settings.on_error) from error
        finally:
            self._instruments.count(EVALUATIONS, self._settings.name, result)
            self._instruments.observe(SECONDS, perf_counter() - start, self._settings.name, result)
        self._remember(key, status, attributes)
        return status

    def _remember(self, key: str, status: Mapping[str, Any], attributes: Attributes) -> None:
        seconds = self._settings.authorized_ttl if status.get("allowed") else self._settings.unauthorized_ttl
        if seconds <= 0 or _controlled_size(attributes) >= _MAX_REMEMBERED:
            return
        self._answers[key] = (self._monotonic() + seconds, status)
        self._answers.move_to_end(key)
        while len(self._answers) > _CACHE_SIZE:
            self._answers.popitem(last=False)


def review_spec(attributes: Attributes) -> dict[str, Any]:
    """The spec of the review, without what is empty, in the order of Go's type."""
    user, a = attributes.user, attributes
    spec: dict[str, Any] = {}
    if not a.resource_request:
        spec["nonResourceAttributes"] = _filled(path=a.path, verb=a.verb)
    else:
        resource = _filled(
            namespace=a.namespace,
            verb=a.verb,
            group=a.api_group,
            version=a.api_version,
            resource=a.resource,
            subresource=a.subresource,
            name=a.name,
        )
        spec["resourceAttributes"] = {**resource, **(a.selectors.as_attributes() if a.selectors is not None else {})}
    extra = {key: list(values) for key, values in sorted(user.extra.items())}
    return spec | _filled(user=user.name, groups=list(user.groups), extra=extra, uid=user.uid)


def _checked(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """ValueError for an answer of other types: who says `"allowed": "no"` has not allowed anything."""
    place = "Go struct field SubjectAccessReviewStatus.status.{} of type {}"
    for name in ("allowed", "denied"):
        boolean_field(status, name, place.format(name, "bool"))
    text_field(status, "reason", place.format("reason", "string"))
    return status


def _filled(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _old_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """v1beta1 calls the groups `group`."""
    return {("group" if name == "groups" else name): value for name, value in spec.items()}


def _controlled_size(a: Attributes) -> int:
    parts: Sequence[str] = (a.namespace, a.verb, a.api_group, a.api_version, a.resource, a.subresource, a.name, a.path)
    return sum(map(len, parts))
