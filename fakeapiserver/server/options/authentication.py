"""Builds the authenticators that a configuration asks for, in upstream's order.

Upstream: pkg/kubeapiserver/options/authentication.go, pkg/kubeapiserver/authenticator/config.go.
"""

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go import quote
from fakeapiserver.apimachinery.go import url as go_url
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.auth.audience_agnostic import AudienceAgnostic
from fakeapiserver.auth.authenticators import bootstrap, oidc
from fakeapiserver.auth.authenticators import webhook as webhook_module
from fakeapiserver.auth.authenticators.anonymous import Anonymous
from fakeapiserver.auth.authenticators.bearertoken import BearerToken
from fakeapiserver.auth.authenticators.requestheader import REQUEST_HEADER_UID, RequestHeader, RequestHeaderConfig
from fakeapiserver.auth.authenticators.serviceaccount import (
    LEGACY_ISSUER,
    BoundValidator,
    LegacyValidator,
    SignedTokens,
)
from fakeapiserver.auth.authenticators.tokenfile import StaticTokens, admin_token, load_token_file
from fakeapiserver.auth.authenticators.websocket import WebSocketProtocol
from fakeapiserver.auth.authenticators.x509 import X509
from fakeapiserver.auth.interfaces import Authenticator, Credentials, TokenAuthenticator, TokenReviewer, UserInfo
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys, private_key
from fakeapiserver.auth.union import Union
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.services import TokenIssuer
from fakeapiserver.server.http.client_authorities import ClientAuthorities
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.options import authentication_config, config_reloads, webhook_clients
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.options.watched_file import WatchedFile
from fakeapiserver.transport.files import read_file

_ALWAYS_ALLOW: Final = "AlwaysAllow"

# What runs until it is cancelled.
Background = Callable[[], Coroutine[None, None, None]]

log = logging.getLogger(__name__)

_WEBHOOK_TIMEOUT: Final = 30.0
_LONGEST_BOUNDS: Final = (3600, 1 << 32)  # seconds


class Authentication(Struct, frozen=True):
    """The configured authentication.

    `authenticator` finds a request's user, `tokens` a token's (TokenReview); `background` has to run while the server does.
    `own_tokens`: the administrator's, and those of users that are made while the server runs.
    """

    authenticator: Authenticator
    tokens: TokenReviewer
    own_tokens: StaticTokens
    background: list[Background] = field(default_factory=list)


def authentication(
    config: Config,
    loopback: Loopback,
    *,
    token: str,
    client_authorities: ClientAuthorities,
    request_headers: RequestHeaderConfig | None,
    keys: ServiceAccountKeys,
    instruments: Instruments,
) -> Authentication:
    """Returns the authenticators that the flags configure. `token` is the one of the server's own administrator.

    Raises OSError and ValueError for files that can't be used and flags that contradict each other.
    """
    scopes, objects = loopback.scopes, loopback.objects
    features, clock = scopes.table.scheme.features, scopes.clock
    check_options(config, features)
    audiences = api_audiences(config)
    background: list[Background] = [client_authorities.run]
    methods: list[Authenticator] = []
    if request_headers is not None:
        proxy = RequestHeader(request_headers, clock)
        methods.append(proxy if config.requestheader_client_ca_file is not None else _OwnFrontProxy(proxy))
    if client_authorities.bundle:
        x509 = X509(b"", clock, reads_uids=features.enabled("AllowParsingUserUIDFromCertAuth"))
        client_authorities.subscribe(x509.use)
        methods.append(x509)
    own_tokens = admin_token(token)
    tokens: list[TokenAuthenticator] = [AudienceAgnostic(audiences, own_tokens)]
    if config.token_auth_file is not None:
        tokens.append(AudienceAgnostic(audiences, load_token_file(config.token_auth_file)))
    legacy = LegacyValidator(objects, clock, loopback.label_secret, config.service_account_lookup)
    catch_up = scopes.storage.catch_up if config.etcd.servers else None
    tokens.append(SignedTokens(keys, (LEGACY_ISSUER,), audiences, legacy, catch_up))
    bound = BoundValidator(objects, clock)
    tokens.append(SignedTokens(keys, config.service_account_issuer, audiences, bound, catch_up))
    if config.enable_bootstrap_token_auth:
        tokens.append(AudienceAgnostic(audiences, bootstrap.BootstrapTokens(objects, clock)))
    structured = _structured(config, clock, background, instruments)
    if structured.tokens is not None:
        tokens.append(AudienceAgnostic(audiences, structured.tokens))
    if config.authentication_token_webhook_config_file is not None:
        tokens.append(_webhook(config, clock))
    bearer = BearerToken(tokens, audiences, clock, instruments)
    union = Union([*methods, bearer, WebSocketProtocol(bearer, audiences)], structured.anonymous)
    return Authentication(union, bearer, own_tokens, background)


class _OwnFrontProxy(Struct, frozen=True):
    """The server's own front proxy: other certificates don't concern it."""

    proxy: RequestHeader

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        try:
            return await self.proxy.authenticate(credentials)
        except StatusError:
            return None


class _Structured(Struct, frozen=True):
    """The authenticators of an AuthenticationConfiguration, or of flags in its place."""

    anonymous: Anonymous | None
    tokens: TokenAuthenticator | None = None


def _structured(config: Config, clock: Clock, background: list[Background], instruments: Instruments) -> _Structured:
    path = config.authentication_config
    anonymous = Anonymous() if _allows_anonymous(config) else None
    if path is None and not config.oidc_issuer_url:
        return _Structured(anonymous)

    disallowed = config.service_account_issuer

    def issuers(document: Object, algorithms: Sequence[str] = oidc.ALGORITHMS) -> list[oidc.JWTAuthenticator]:
        return [oidc.JWTAuthenticator(jwt, algorithms, disallowed, clock) for jwt in document.get("jwt") or ()]

    if path is None:
        algorithms = config.oidc_signing_algs or ("RS256",)
        jwts = oidc.JWTAuthenticators(issuers(authentication_config.from_flags(config), algorithms))
        background.append(jwts.run)
        return _Structured(anonymous, jwts)
    try:
        content = read_file(path)
        decoded = authentication_config.decode(content)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"failed to load authentication configuration from file {quote.go_quote(str(path))}: {error}"
        ) from error
    if "anonymous-auth" in config.given and decoded.get("anonymous") is not None:
        raise ValueError(
            "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
            "authentication configuration file"
        )
    authentication_config.check(decoded)
    jwts = oidc.JWTAuthenticators(issuers(decoded))
    reloads = config_reloads.ConfigReloads("authentication", instruments, clock)
    reloads.loaded(content)

    async def use(changed: bytes) -> None:
        try:
            new = issuers(authentication_config.load(changed, disallowed, decoded))
        except ValueError as error:
            reloads.failed()
            log.error("failed to reload the authentication configuration: %s", error)
        else:
            await jwts.replace(new)
            reloads.succeeded(changed)

    background += [jwts.run, WatchedFile(path, content, use).run]
    return _Structured(_anonymous(decoded, anonymous), jwts)


def _allows_anonymous(config: Config) -> bool:
    """Returns whether the flags allow anonymous requests. Those that everything is allowed to must say who they are."""
    if config.anonymous_auth and _ALWAYS_ALLOW in config.authorization_mode and config.authorization_config is None:
        log.warning(
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. "
            "You should use a different authorizer"
        )
        return False
    return config.anonymous_auth


def _anonymous(decoded: Object, otherwise: Anonymous | None) -> Anonymous | None:
    """Returns the anonymous authenticator of the file, or by default that of the flag."""
    anonymous = decoded.get("anonymous")
    if anonymous is None:
        return otherwise
    paths = [condition.get("path") or "" for condition in anonymous.get("conditions") or ()]
    return Anonymous(paths) if anonymous.get("enabled") else None


def _webhook(config: Config, clock: Clock) -> TokenAuthenticator:
    """Returns the webhook's authenticator.

    Raises OSError; ValueError for an unusable kubeconfig or an unknown version.
    """
    path, version = config.authentication_token_webhook_config_file, config.authentication_token_webhook_version
    assert path is not None
    webhook = webhook_clients.remote(path, _WEBHOOK_TIMEOUT, clock)
    if version not in webhook_module.VERSIONS:
        known = ", ".join(map(quote.go_quote, webhook_module.VERSIONS))
        raise ValueError(
            f"unsupported authentication webhook version {quote.go_quote(version)}, supported versions are {known}"
        )
    ttl = config.authentication_token_webhook_cache_ttl
    return webhook_module.WebhookTokens(webhook.post, version, api_audiences(config), ttl, clock)


def service_account_keys(config: Config) -> ServiceAccountKeys:
    """The keys of the files that are named, else one that is made when it is needed. OSError and ValueError."""
    signing, verifying = config.service_account_signing_key_file, config.service_account_key_file
    keys = ServiceAccountKeys(signing, verifying)
    if signing is not None or verifying:
        keys.load()
    return keys


def token_issuer(config: Config) -> TokenIssuer:
    """Returns what signs service account tokens. Raises OSError and ValueError for unusable keys."""
    return TokenIssuer(
        service_account_keys(config),
        config.service_account_issuer[0],
        api_audiences(config),
        config.service_account_extend_token_expiration,
        int(config.service_account_max_token_expiration),
        config.service_account_jwks_uri,
    )


def api_audiences(config: Config) -> tuple[str, ...]:
    """Returns the default audiences of tokens: --api-audiences, or the issuers."""
    return config.api_audiences or config.service_account_issuer


def check_options(config: Config, features: FeatureGates = DEFAULT_GATES) -> None:
    """ValueError and OSError in upstream's words, for flags that contradict each other (all at once) and files that nothing can be
    done with."""
    longest, (least, most) = config.service_account_max_token_expiration, _LONGEST_BOUNDS
    if longest and not least <= longest <= most:
        raise ValueError("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
    issuers, signing = config.service_account_issuer, config.service_account_signing_key_file
    if signing is not None and issuers and issuers[0]:
        try:
            private_key(signing)
        except (OSError, ValueError) as error:
            raise ValueError(f"failed to parse service-account-issuer-key-file: {error}") from error
    errors = [*_oidc_errors(config), *_service_account_errors(config), *_request_header_errors(config, features)]
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _oidc_errors(config: Config) -> list[str]:
    flags = any(name.startswith("oidc-") for name in config.given)
    if config.authentication_config is not None:
        return ["authentication-config file and oidc-* flags are mutually exclusive"] if flags else []
    if flags and not (config.oidc_issuer_url and config.oidc_client_id):
        return ["oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"]
    return []


def _service_account_errors(config: Config) -> list[str]:
    errors, seen = [], set()
    for issuer in config.service_account_issuer:
        if ":" in issuer and (problem := go_url.url_problem(issuer)):
            told = f"contained a ':' but was not a valid URL: {problem}"
            errors.append(f"service-account-issuer {quote.go_quote(issuer)} {told}")
        elif not issuer:
            errors.append("service-account-issuer should not be an empty string")
        elif issuer in seen:
            errors.append(f"service-account-issuer {quote.go_quote(issuer)} is already specified")
        seen.add(issuer)
    if uri := config.service_account_jwks_uri:
        try:
            if go_url.parse(uri).scheme != "https":
                errors.append(f"service-account-jwks-uri requires https scheme, parsed as: {uri}")
        except ValueError as error:
            errors.append(f"service-account-jwks-uri must be a valid URL: {error}")
    return errors


def _request_header_errors(config: Config, features: FeatureGates) -> Iterator[str]:
    blank = {
        "username-headers": config.requestheader_username_headers,
        "group-headers": config.requestheader_group_headers,
        "extra-headers-prefix": config.requestheader_extra_headers_prefix,
        "allowed-names": config.requestheader_allowed_names,
        "uid-headers": config.requestheader_uid_headers if features.enabled(REQUEST_HEADER_UID) else (),
    }
    for name, values in blank.items():
        if not all(value.strip() for value in values):
            yield f'empty value in "requestheader-{name}"'
    uids = config.requestheader_uid_headers
    if uids and not features.enabled(REQUEST_HEADER_UID):
        yield f'--requestheader-uid-headers requires the "{REQUEST_HEADER_UID}" feature to be enabled'
    elif uids and not any(value.lower() == "x-remote-uid" for value in uids):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation "
            "will not work"
        )
    clients, proxies = config.client_ca_file, config.requestheader_client_ca_file
    if clients and proxies and not config.requestheader_allowed_names and _overlap(clients, proxies):
        yield (
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
            "--requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating "
            "proxy headers for arbitrary users"
        )


def _overlap(one: Path, other: Path) -> bool:
    """Reports whether both bundles have a certificate in common; unreadable files are reported elsewhere."""
    from cryptography.x509 import load_pem_x509_certificates

    try:
        own, others = (load_pem_x509_certificates(path.read_bytes()) for path in (one, other))
    except (OSError, ValueError):
        return False
    return any(certificate in others for certificate in own)
