"""Reviews: questions to the authenticator and the authorizer, asked by POST and never stored.

Upstream: pkg/registry/authentication/{selfsubjectreview,tokenreview}; those about authorization are in access_reviews.py.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.authenticators.bearertoken import bearer_token
from fakeapiserver.auth.interfaces import (
    Authenticator,
    Credentials,
    RefusedError,
    RuleAuthorizer,
    TokenReviewer,
    UserInfo,
)
from fakeapiserver.auth.interfaces import Response as Answer
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.reviews.access_reviews import access_reviews
from fakeapiserver.endpoints.scope import Virtual

_AUTHENTICATION = "authentication.k8s.io"


def reviews(
    authenticator: Authenticator,
    tokens: TokenReviewer,
    authorizer: RuleAuthorizer,
    clock: Clock,
    audiences: Sequence[str],
    version: str,
) -> Mapping[GroupResource, Virtual]:
    virtual: Mapping[GroupResource, Virtual] = {
        **access_reviews(authorizer, version),
        GroupResource(_AUTHENTICATION, "selfsubjectreviews"): SelfReview(clock),
        GroupResource(_AUTHENTICATION, "tokenreviews"): TokenReview(authenticator, tokens, tuple(audiences)),
    }
    return virtual if version >= "v1.34" else {name: _Untimed(review) for name, review in virtual.items()}


class _Untimed(Struct, frozen=True):
    """1.33 shows that what is never stored has no time."""

    review: Virtual

    async def create(self, request: Request, obj: Object) -> Object:
        answer = await self.review.create(request, obj)
        return {**answer, "metadata": {"creationTimestamp": None, **metadata(answer)}}


class SelfReview(Struct, frozen=True):
    """SelfSubjectReview: who am I?"""

    clock: Clock

    async def create(self, request: Request, obj: Object) -> Object:
        """The answer is an object of its own: nothing of the question is in it."""
        meta = {"creationTimestamp": rfc3339(self.clock.now())}
        status = {"userInfo": user_info(request.user)}
        return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": meta, "status": status}


class TokenReview(Struct, frozen=True):
    """TokenReview: whose token is this? `audiences` are the server's own."""

    authenticator: Authenticator
    tokens: TokenReviewer
    audiences: tuple[str, ...]

    async def create(self, request: Request, obj: Object) -> Object:
        spec = obj.get("spec") or {}
        token, wanted = spec.get("token", ""), tuple(spec.get("audiences") or self.audiences)
        if not token:
            raise new_bad_request("token is required for TokenReview in authentication")
        # A status without an answer stays as it was sent.
        asked = {"user": {}, **(obj.get("status") or {})}
        asked.pop("authenticated", None)
        try:
            response = await self._found(Credentials(f"Bearer {token}", audiences=wanted))
        except StatusError:
            return {**obj, "status": asked}
        except RefusedError as error:
            return {**obj, "status": asked | {"error": str(error)}}
        answer = {"authenticated": True, "user": user_info(response.user), "audiences": list(response.audiences)}
        return {**obj, "status": asked | answer}

    async def _found(self, credentials: Credentials) -> Answer:
        """A review stands for a request with this credential: what is no token at all may be anonymous. StatusError 401,
        RefusedError."""
        token = bearer_token(credentials.authorization)
        if token:
            return await self.tokens.review(token, credentials.audiences)
        user = await self.authenticator.authenticate(credentials)
        assert user is not None
        return Answer(user, credentials.audiences)


def user_info(user: UserInfo) -> Object:
    """authentication.k8s.io/v1 UserInfo, without what is empty."""
    extra = {key: list(values) for key, values in user.extra.items()}
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in info.items() if value}
