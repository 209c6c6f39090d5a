"""Builds the authenticator, the authorizer and the admission chain that a configuration asks for.

Upstream: pkg/kubeapiserver/options/{authentication,authorization,admission}.go.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from fakeapiserver.admission.chain import Chain
from fakeapiserver.admission.interfaces import Getter, Initializer, Versions
from fakeapiserver.admission.options import new_chain
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.auth.authenticators.anonymous import Anonymous
from fakeapiserver.auth.authenticators.bearertoken import BearerToken
from fakeapiserver.auth.authenticators.serviceaccount import ServiceAccountTokens
from fakeapiserver.auth.authenticators.tokenfile import admin_token, load_token_file
from fakeapiserver.auth.authorizers import always
from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.authorizers.union import Union as AuthorizerUnion
from fakeapiserver.auth.interfaces import (
    Authenticator,
    Authorizer,
    Credentials,
    ObjectReader,
    RuleResolver,
    TokenAuthenticator,
    UserInfo,
)
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.auth.union import Union as AuthenticatorUnion
from fakeapiserver.clock import Clock
from fakeapiserver.server.config import Config

if TYPE_CHECKING:
    from fakeapiserver.registry.generic.store import Guard

log = logging.getLogger(__name__)

_MODES: Final[Mapping[str, Callable[[], Authorizer]]] = {
    "AlwaysAllow": always.AlwaysAllow,
    "AlwaysDeny": always.AlwaysDeny,
    "Node": always.Node,
}


class Objects(Getter, ObjectReader, Protocol):
    """What plugins and authorizers read through."""


def authenticator(
    config: Config, *, clock: Clock, token: str, client_ca: bytes, keys: ServiceAccountKeys, objects: Getter
) -> Authenticator:
    """Certificates, then tokens, then (unless switched off) anonymous. ValueError for an unusable CA or token file."""
    methods: list[Authenticator] = []
    if client_ca:
        methods.append(LazyX509(client_ca, clock))
    tokens: list[TokenAuthenticator] = [admin_token(token)]
    if config.token_auth_file is not None:
        tokens.append(load_token_file(config.token_auth_file))
    issuers = config.service_account_issuer
    tokens.append(ServiceAccountTokens(keys, issuers, api_audiences(config), objects, clock))
    methods.append(BearerToken(tokens))
    return AuthenticatorUnion(methods, Anonymous() if config.anonymous_auth else None, clock)


def service_account_keys(config: Config) -> ServiceAccountKeys:
    """The keys of the files that are named, else one that is made when it is needed. OSError and ValueError."""
    signing, verifying = config.service_account_signing_key_file, config.service_account_key_file
    keys = ServiceAccountKeys(signing, verifying)
    if signing is not None or verifying:
        keys.load()
    return keys


def api_audiences(config: Config) -> tuple[str, ...]:
    """Whom tokens are for if they don't say (upstream: the first issuer, unless --api-audiences)."""
    return config.api_audiences or config.service_account_issuer[:1]


class LazyX509:
    """Reads the CA bundle when the first client certificate comes: most tests use none, and cryptography is slow to load."""

    def __init__(self, client_ca: bytes, clock: Clock) -> None:
        self._client_ca = client_ca
        self._clock = clock
        self._x509: Authenticator | None = None

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        if not credentials.peer_certificate:
            return None
        if self._x509 is None:
            from fakeapiserver.auth.authenticators.x509 import X509

            self._x509 = X509(self._client_ca, self._clock)
        return await self._x509.authenticate(credentials)


def guards(authorizer: Authorizer, rbac: RBAC, objects: Getter) -> Callable[[GroupResource], "Guard | None"]:
    """Who looks at writes to a resource first: who grants rights must have them, whichever modes are on."""

    def guard(resource: GroupResource) -> "Guard | None":
        if resource.group != "rbac.authorization.k8s.io":
            return None
        from fakeapiserver.registry.rbac.policybased import PolicyBased

        return PolicyBased(resource.resource, authorizer, rbac, objects)

    return guard


def authorizer(config: Config, rbac: RBAC) -> AuthorizerUnion:
    """The modes in the order given, behind system:masters, who may do everything."""
    modes = [rbac if mode == "RBAC" else _MODES[mode]() for mode in config.authorization_mode]
    resolvers = [mode for mode in modes if isinstance(mode, RuleResolver)]
    return AuthorizerUnion([always.PrivilegedGroups(), *modes], resolvers)


def admission(config: Config, objects: Getter, versions: Versions) -> Chain:
    """Upstream's order and default set, changed by --enable- and --disable-admission-plugins. ValueError for unknown names.
    What is accepted and not built yet is logged as a warning."""
    initializer = Initializer(objects, versions)
    chain, warning = new_chain(initializer, config.enable_admission_plugins, config.disable_admission_plugins)
    if warning:
        log.warning(warning)
    return chain
