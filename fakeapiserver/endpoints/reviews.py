"""Reviews: questions to the authenticator and the authorizer, asked by POST and never stored.

Upstream: pkg/registry/authorization/{selfsubjectaccessreview,subjectaccessreview,localsubjectaccessreview,selfsubjectrulesreview},
pkg/registry/authentication/{selfsubjectreview,tokenreview}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_invalid
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.authenticators.bearertoken import bearer_token
from fakeapiserver.auth.interfaces import (
    Attributes,
    Authorizer,
    Decision,
    RefusedError,
    RuleResolver,
    TokenReviewer,
    UserInfo,
)
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import Virtual

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"


def reviews(
    tokens: TokenReviewer,
    authorizer: Authorizer,
    rules: RuleResolver | None,
    clock: Clock,
    audiences: tuple[str, ...],
) -> Mapping[GroupResource, Virtual]:
    access = AccessReview(authorizer)
    return {
        GroupResource(_AUTHORIZATION, "selfsubjectaccessreviews"): SelfAccessReview(authorizer),
        GroupResource(_AUTHORIZATION, "subjectaccessreviews"): access,
        GroupResource(_AUTHORIZATION, "localsubjectaccessreviews"): access,
        GroupResource(_AUTHORIZATION, "selfsubjectrulesreviews"): SelfRulesReview(rules),
        GroupResource(_AUTHENTICATION, "selfsubjectreviews"): SelfReview(clock),
        GroupResource(_AUTHENTICATION, "tokenreviews"): TokenReview(tokens, audiences),
    }


@dataclass(frozen=True, slots=True)
class AccessReview:
    """SubjectAccessReview and LocalSubjectAccessReview: may this user?"""

    authorizer: Authorizer

    async def create(self, request: Request, obj: Object) -> Object:
        spec = obj.get("spec") or {}
        errors = _attribute_errors(spec)
        if not spec.get("user") and not spec.get("groups"):
            errors.append(
                field.invalid("spec.user", spec.get("user", ""), "at least one of user or group must be specified")
            )
        if errors:
            raise _invalid(obj, errors)
        resource_attributes = spec.get("resourceAttributes") or {}
        if (
            obj["kind"] == "LocalSubjectAccessReview"
            and resource_attributes.get("namespace", "") != request.info.namespace
        ):
            place = "spec.resourceAttributes.namespace"
            wrong = field.invalid(place, resource_attributes.get("namespace", ""), "must match metadata.namespace")
            raise _invalid(obj, [wrong])
        extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
        user = UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)
        return {**obj, "status": await _status(self.authorizer, spec, user)}


@dataclass(frozen=True, slots=True)
class SelfAccessReview:
    """SelfSubjectAccessReview: may I?"""

    authorizer: Authorizer

    async def create(self, request: Request, obj: Object) -> Object:
        spec = obj.get("spec") or {}
        if errors := _attribute_errors(spec):
            raise _invalid(obj, errors)
        return {**obj, "status": await _status(self.authorizer, spec, request.user)}


@dataclass(frozen=True, slots=True)
class SelfRulesReview:
    """SelfSubjectRulesReview: what may I do here?"""

    rules: RuleResolver | None

    async def create(self, request: Request, obj: Object) -> Object:
        namespace = (obj.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise new_bad_request("no namespace on request")
        # Upstream answers with an object of its own, which has nothing but the answer.
        answer: Object = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": {}, "spec": {}}
        if self.rules is None:
            return {**answer, "status": {"resourceRules": [], "nonResourceRules": [], "incomplete": False}}
        resource_rules, other_rules, incomplete, error = await self.rules.rules_for(request.user, namespace)
        status: Object = {"resourceRules": resource_rules, "nonResourceRules": other_rules, "incomplete": incomplete}
        if error:
            status["evaluationError"] = error
        return {**answer, "status": status}


@dataclass(frozen=True, slots=True)
class SelfReview:
    """SelfSubjectReview: who am I?"""

    clock: Clock

    async def create(self, request: Request, obj: Object) -> Object:
        meta = {**obj["metadata"], "creationTimestamp": rfc3339(self.clock.now())}
        return {**obj, "metadata": meta, "status": {"userInfo": user_info(request.user)}}


@dataclass(frozen=True, slots=True)
class TokenReview:
    """TokenReview: whose token is this? `audiences` are the server's own."""

    tokens: TokenReviewer
    audiences: tuple[str, ...]

    async def create(self, request: Request, obj: Object) -> Object:
        spec = obj.get("spec") or {}
        token, wanted = spec.get("token", ""), tuple(spec.get("audiences") or self.audiences)
        if not token:
            raise new_bad_request("token is required for TokenReview in authentication")
        # A review stands for a request with `Authorization: Bearer TOKEN`.
        token = bearer_token(f"Bearer {token}")
        if not token:
            return {**obj, "status": {"user": {}}}
        try:
            found = await self.tokens.review(token, wanted)
        except RefusedError as error:
            return {**obj, "status": {"user": {}, "error": str(error)}}
        request.warnings.extend(found.warnings)
        status = {"authenticated": True, "user": user_info(found.user), "audiences": list(found.audiences)}
        return {**obj, "status": status}


def user_info(user: UserInfo) -> Object:
    """authentication.k8s.io/v1 UserInfo, without what is empty."""
    extra = {key: list(values) for key, values in user.extra.items()}
    found = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in found.items() if value}


def _attribute_errors(spec: Object) -> ErrorList:
    both = spec.get("resourceAttributes") is not None, spec.get("nonResourceAttributes") is not None
    if all(both):
        detail = "cannot be specified in combination with resourceAttributes"
        return [field.invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], detail)]
    if not any(both):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field.invalid("spec.resourceAttributes", spec.get("resourceAttributes"), detail)]
    return []


def _invalid(obj: Object, errors: ErrorList) -> StatusError:
    # Upstream names the group and forgets the kind.
    return new_invalid(GroupKind(_AUTHORIZATION, ""), "", errors)


async def _status(authorizer: Authorizer, spec: Object, user: UserInfo) -> Object:
    decision, reason = await authorizer.authorize(_attributes(spec, user))
    status: Object = {"allowed": decision is Decision.ALLOW}
    if decision is Decision.DENY:
        status["denied"] = True
    if reason:
        status["reason"] = reason
    return status


def _attributes(spec: Object, user: UserInfo) -> Attributes:
    wanted: dict[str, Any] | None = spec.get("resourceAttributes")
    if wanted is None:
        other = spec["nonResourceAttributes"]
        return Attributes(user=user, verb=other.get("verb", ""), path=other.get("path", ""))
    return Attributes(
        user=user,
        verb=wanted.get("verb", ""),
        resource_request=True,
        api_group=wanted.get("group", ""),
        api_version=wanted.get("version", "*"),
        resource=wanted.get("resource", ""),
        subresource=wanted.get("subresource", ""),
        namespace=wanted.get("namespace", ""),
        name=wanted.get("name", ""),
    )
