"""The AuthenticationConfiguration: from --authentication-config, or what the --oidc- flags say in its words.

Upstream: k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go, k8s.io/apiserver/pkg/apis/apiserver/v1/types.go.
"""

from collections.abc import Collection
from typing import Final

from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.field import forbidden
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.auth.authenticators.oidc import validate
from fakeapiserver.server.options.config import Config
from fakeapiserver.transport.files import read_file

_TEXT: Final = "string"
_KIND: Final = ConfigKind(
    "AuthenticationConfiguration",
    tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1")),
    {
        "AuthenticationConfiguration": {"jwt": "[]JWTAuthenticator", "anonymous": "AnonymousAuthConfig"},
        "AnonymousAuthConfig": {"enabled": "bool", "conditions": "[]AnonymousAuthCondition"},
        "AnonymousAuthCondition": {"path": _TEXT},
        "JWTAuthenticator": {
            "issuer": "Issuer",
            "claimValidationRules": "[]ClaimValidationRule",
            "claimMappings": "ClaimMappings",
            "userValidationRules": "[]UserValidationRule",
        },
        "Issuer": {
            **dict.fromkeys(("url", "discoveryURL", "certificateAuthority", "egressSelectorType"), _TEXT),
            "audiences": "[]string",
            "audienceMatchPolicy": "AudienceMatchPolicyType",
        },
        "AudienceMatchPolicyType": _TEXT,
        "ClaimValidationRule": dict.fromkeys(("claim", "requiredValue", "expression", "message"), _TEXT),
        "ClaimMappings": {
            "username": "PrefixedClaimOrExpression",
            "groups": "PrefixedClaimOrExpression",
            "uid": "ClaimOrExpression",
            "extra": "[]ExtraMapping",
        },
        "PrefixedClaimOrExpression": dict.fromkeys(("claim", "prefix", "expression"), _TEXT),
        "ClaimOrExpression": dict.fromkeys(("claim", "expression"), _TEXT),
        "ExtraMapping": dict.fromkeys(("key", "valueExpression"), _TEXT),
        "UserValidationRule": dict.fromkeys(("expression", "message"), _TEXT),
    },
)


def load(data: bytes, disallowed: Collection[str], before: Object) -> Object:
    """The configuration that a file was changed to; what it says of anonymous requests must be as `before`. ValueError."""
    config = decode(data)
    errors = validate(config, disallowed)
    if config.get("anonymous") != before.get("anonymous"):
        errors.append(forbidden("anonymous", "changed from initial configuration file"))
    if errors:
        raise ValueError(aggregated(errors))
    return config


def check(config: Object) -> None:
    """Validates the configuration. Raises ValueError with all errors in upstream's words.

    That an issuer is this server itself is checked where its authenticator is created.
    """
    if errors := validate(config):
        raise ValueError(f"invalid authentication configuration: {aggregated(errors)}")


def decode(data: bytes) -> Object:
    """Decodes an AuthenticationConfiguration. Raises ValueError for another kind and for unknown fields."""
    if not data:
        raise ValueError("empty config data")
    return _KIND.decode(data)


def from_flags(config: Config) -> Object:
    """The one issuer of the --oidc- flags. OSError and ValueError."""
    prefix = config.oidc_username_prefix
    if not prefix and config.oidc_username_claim != "email":
        prefix = f"{config.oidc_issuer_url}#"
    mappings: Object = {"username": {"claim": config.oidc_username_claim, "prefix": "" if prefix == "-" else prefix}}
    if config.oidc_groups_claim:
        mappings["groups"] = {"claim": config.oidc_groups_claim, "prefix": config.oidc_groups_prefix}
    issuer: Object = {"url": config.oidc_issuer_url, "audiences": [config.oidc_client_id]}
    if config.oidc_ca_file is not None:
        issuer["certificateAuthority"] = read_file(config.oidc_ca_file).decode("utf-8", "replace")
    rules = [{"claim": claim, "requiredValue": value} for claim, value in config.oidc_required_claim.items()]
    document = {"jwt": [{"issuer": issuer, "claimMappings": mappings, "claimValidationRules": rules}]}
    check(document)
    return document
