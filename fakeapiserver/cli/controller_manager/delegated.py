"""Authentication and authorization of a component by the API server: TokenReviews and SubjectAccessReviews.

Upstream: k8s.io/apiserver/pkg/server/options/{authentication,authorization}.go,
k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go, pkg/authorization/authorizerfactory/delegating.go.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import StatusError as Refused
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.authenticators.anonymous import Anonymous
from fakeapiserver.auth.authenticators.bearertoken import BearerToken
from fakeapiserver.auth.authenticators.requestheader import RequestHeader, RequestHeaderConfig
from fakeapiserver.auth.authenticators.x509 import X509
from fakeapiserver.auth.authorizers.always import PrivilegedGroups
from fakeapiserver.auth.authorizers.union import Union as Authorizers
from fakeapiserver.auth.authorizers.webhook import Settings, Webhook
from fakeapiserver.auth.interfaces import (
    Attributes,
    Authenticator,
    Authorizer,
    Credentials,
    Decision,
    RefusedError,
    Response,
    UserInfo,
)
from fakeapiserver.auth.union import Union
from fakeapiserver.client.cache.shared_informer import ResourceEventHandlerFuncs, SharedInformer
from fakeapiserver.client.dynamic import DynamicClient, ListOptions
from fakeapiserver.client.errors import StatusError, TransportError, is_not_found
from fakeapiserver.clock import Clock
from fakeapiserver.transport.ca_bundle import check_bundle
from fakeapiserver.transport.files import read_file

log = logging.getLogger(__name__)

_TOKEN_REVIEWS: Final = GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews")
_ACCESS_REVIEWS: Final = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")
_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_NAMESPACE: Final = "kube-system"
_NAME: Final = "extension-apiserver-authentication"


class RequestHeaderOptions(Struct, frozen=True):
    """The --requestheader- flags, with the defaults of components."""

    client_ca_file: Path | None = None
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)

    def config(self, client_ca: bytes) -> RequestHeaderConfig:
        return RequestHeaderConfig(
            client_ca,
            self.allowed_names,
            self.username_headers,
            self.uid_headers,
            self.group_headers,
            self.extra_headers_prefix,
        )


class DelegatedAuthentication:
    """An Authenticator that asks the API server; `start` it, and `run` it while it is in use.

    client: creates TokenReviews and reads the authorities; None: all tokens are unknown. Raises OSError and
    ValueError for unusable files.
    """

    def __init__(
        self,
        client: DynamicClient | None,
        clock: Clock,
        *,
        client_ca_file: Path | None = None,
        request_header: RequestHeaderOptions | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._file = _bundle("client-ca-bundle", client_ca_file)
        self._header_options = request_header or RequestHeaderOptions()
        self._header_file = _bundle("request-header", self._header_options.client_ca_file)
        tokens = (TokenReviews(client),) if client is not None else ()
        self._bearer: Sequence[Authenticator] = (BearerToken(tokens, clock=clock),) if tokens else ()
        self._union: Union
        self._use({})

    async def authenticate(self, credentials: Credentials) -> UserInfo:
        """StatusError 401."""
        return await self._union.authenticate(credentials)

    async def look_up(self) -> None:
        """Reads the authorities that the API server trusts; none is no error.

        Raises StatusError, TransportError and other errors of a client.
        """
        if self._client is None:
            return
        try:
            config_map = await self._client.resource(_CONFIG_MAPS, _NAMESPACE).get(_NAME)
        except StatusError as error:
            if not is_not_found(error):
                raise
            log.warning("configmap %s/%s is not there: certificates that it names are not known", _NAMESPACE, _NAME)
        else:
            self._take(config_map)

    async def run(self) -> None:
        """Follows changes of the authorities until it is cancelled."""
        if self._client is None:
            return
        informer = SharedInformer(
            self._client.resource(_CONFIG_MAPS, _NAMESPACE),
            name=_NAME,
            selection=ListOptions(field_selector=f"metadata.name={_NAME}"),
        )
        informer.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._take, update=lambda _, new: self._take(new), delete=lambda _: self._use({})
            )
        )
        await informer.run()

    def _take(self, config_map: Object) -> None:
        try:
            self._use(config_map.get("data") or {})
        except ValueError as error:
            log.error("configmap %s/%s can't be used: %s", _NAMESPACE, _NAME, error)

    def _use(self, data: Mapping[str, str]) -> None:
        """`data` of the config map; files come first. ValueError."""
        methods: list[Authenticator] = []
        options, proxies = self._header_options, self._header_file
        if not proxies and (looked_up := data.get("requestheader-client-ca-file", "")):
            proxies = looked_up.encode()
            options = _header_options(data)
        if proxies:
            check_bundle("request-header", proxies)
            methods.append(_FrontProxy(RequestHeader(options.config(proxies), self._clock)))
        authorities = self._file + data.get("client-ca-file", "").encode()
        if authorities:
            check_bundle("client-ca-bundle", authorities)
            methods.append(X509(authorities, self._clock))
        self._union = Union([*methods, *self._bearer], Anonymous())


class _FrontProxy(Struct, frozen=True):
    """Certificates of others are no concern of its."""

    proxy: RequestHeader

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        try:
            return await self.proxy.authenticate(credentials)
        except Refused:
            return None


class TokenReviews(Struct, frozen=True):
    """Knows the tokens that the API server knows."""

    client: DynamicClient

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            answer = await self.client.resource(_TOKEN_REVIEWS).create(review)
        except (StatusError, TransportError, TimeoutError, OSError) as error:
            log.error("unable to ask whose a token is: %s", error)
            raise RefusedError(str(error)) from error
        status = answer.get("status") or {}
        if status.get("authenticated") is not True:
            return None
        user: Object = status.get("user") or {}
        extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
        return Response(
            UserInfo(user.get("username") or "", user.get("uid") or "", tuple(user.get("groups") or ()), extra)
        )


def authorizer(
    client: DynamicClient | None,
    clock: Clock,
    *,
    always_allow_paths: Sequence[str],
    allow_ttl: float = 10.0,
    deny_ttl: float = 10.0,
) -> Authorizer:
    """Returns an authorizer that asks the API server.

    Administrators may do everything, and all users may read these paths (`*` at the end: all that begin so). For
    other requests the API
    server decides by SubjectAccessReviews, which are cached for so many seconds; `client` None: it is not asked.
    """
    authorizers: list[Authorizer] = [PrivilegedGroups(), _AllowedPaths(tuple(always_allow_paths))]
    if client is not None:
        authorizers.append(access_reviews(client, clock, allow_ttl, deny_ttl))
    return Authorizers(authorizers)


def access_reviews(client: DynamicClient, clock: Clock, allow_ttl: float, deny_ttl: float) -> Authorizer:
    """Returns an authorizer that creates a SubjectAccessReview for each request; its decisions are kept for so many seconds."""

    async def post(review: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await client.resource(_ACCESS_REVIEWS).create(dict(review))
        except (StatusError, TransportError, TimeoutError) as error:
            raise ValueError(str(error)) from error

    return Webhook(post, Settings(version="v1", authorized_ttl=allow_ttl, unauthorized_ttl=deny_ttl), clock)


class _AllowedPaths(Struct, frozen=True):
    """Upstream: k8s.io/apiserver/pkg/authorization/path/path.go."""

    paths: Sequence[str]

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        asked = attributes.path.strip("/")
        allowed = not attributes.resource_request and any(
            asked.startswith(path[:-1].lstrip("/")) if path.endswith("*") else asked == path.strip("/")
            for path in self.paths
        )
        return (Decision.ALLOW, "") if allowed else (Decision.NO_OPINION, "")


def _header_options(data: Mapping[str, str]) -> RequestHeaderOptions:
    """ValueError for what isn't a list of texts."""

    def texts(key: str) -> tuple[str, ...]:
        names = json.loads(data.get(f"requestheader-{key}") or "[]")
        if not isinstance(names, list) or not all(isinstance(text, str) for text in names):
            raise ValueError(f"requestheader-{key} is no list of texts")
        return tuple(names)

    return replace(
        RequestHeaderOptions(),
        allowed_names=texts("allowed-names"),
        username_headers=texts("username-headers"),
        uid_headers=texts("uid-headers"),
        group_headers=texts("group-headers"),
        extra_headers_prefix=texts("extra-headers-prefix"),
    )


def _bundle(name: str, path: Path | None) -> bytes:
    if path is None:
        return b""
    content = read_file(path)
    check_bundle(f"{name}::{path}", content)
    return content
