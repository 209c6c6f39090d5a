"""Reviews: questions to the authenticator and the authorizer, asked by POST and never stored.

Upstream: pkg/registry/authentication/{selfsubjectreview,tokenreview}; those about authorization are in access_reviews.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.authenticators.bearertoken import bearer_token
from fakeapiserver.auth.interfaces import (
    Authorizer,
    RefusedError,
    RuleResolver,
    TokenReviewer,
    UserInfo,
)
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.access_reviews import access_reviews
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import Virtual

_AUTHENTICATION = "authentication.k8s.io"


def reviews(
    tokens: TokenReviewer,
    authorizer: Authorizer,
    rules: RuleResolver | None,
    clock: Clock,
    audiences: tuple[str, ...],
) -> Mapping[GroupResource, Virtual]:
    return {
        **access_reviews(authorizer, rules),
        GroupResource(_AUTHENTICATION, "selfsubjectreviews"): SelfReview(clock),
        GroupResource(_AUTHENTICATION, "tokenreviews"): TokenReview(tokens, audiences),
    }


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
