"""The AuthenticationConfiguration: from --authentication-config, or what the --oidc- flags say in its words.

Upstream: k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go, k8s.io/apiserver/pkg/apis/apiserver/v1/types.go.
"""

from collections.abc import Collection
from copy import deepcopy
from typing import Final

from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.field import forbidden, go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.builtin import BuiltinType, DecodeError, compile_builtin
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.serializer import json, yaml
from fakeapiserver.auth.authenticators.oidc import validate
from fakeapiserver.endpoints.body import checked_type_meta, type_meta_error
from fakeapiserver.server.config import Config

_GROUP: Final = "apiserver.config.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_KIND: Final = "AuthenticationConfiguration"
_TYPE: Final = "io.k8s.apiserver.pkg.apis.apiserver.{}." + _KIND
_STRING: Final[Schema] = {"type": "string"}


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
    """ValueError in upstream's words, everything at once. That an issuer is this server itself is told by who makes its
    authenticator."""
    if errors := validate(config):
        raise ValueError(f"invalid authentication configuration: {aggregated(errors)}")


def decode(data: bytes) -> Object:
    """ValueError for what is no AuthenticationConfiguration, or has fields that it hasn't."""
    if not data:
        raise ValueError("empty config data")
    document, repeated = yaml.decode_with_duplicates(data)
    try:
        document = checked_type_meta(document)
    except ValueError as error:
        raise ValueError(type_meta_error(str(error))) from None
    group, _, version = str(document.get("apiVersion") or "").rpartition("/")
    kind = str(document.get("kind") or "")
    if not kind:
        raise ValueError(f"Object 'Kind' is missing in '{json.encode(document).decode()}'")
    if (group, kind) != (_GROUP, _KIND) or version not in _VERSIONS:
        place = f'version {go_quote(str(document.get("apiVersion") or ""))} in scheme "pkg/runtime/scheme.go:111"'
        raise ValueError(f"no kind {go_quote(kind)} is registered for {place}")
    try:
        # The copy is for its complaints: decoding leaves out empty texts, and an empty prefix is one that was given.
        unknown = _compiled(version).decode(deepcopy(document))
    except DecodeError as error:
        raise ValueError(str(error)) from None
    if found := [*repeated, *unknown]:
        raise ValueError(f"strict decoding error: {', '.join(found)}")
    return document


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
        issuer["certificateAuthority"] = config.oidc_ca_file.read_text()
    rules = [{"claim": claim, "requiredValue": value} for claim, value in config.oidc_required_claim.items()]
    found = {"jwt": [{"issuer": issuer, "claimMappings": mappings, "claimValidationRules": rules}]}
    check(found)
    return found


def _compiled(version: str) -> BuiltinType:
    definitions = _definitions(version)
    return compile_builtin(definitions, _TYPE.format(version))


def _definitions(version: str) -> dict[str, Schema]:
    """The configuration's types in OpenAPI's words, which no API server publishes."""

    def name(kind: str) -> str:
        return f"io.k8s.apiserver.pkg.apis.apiserver.{version}.{kind}"

    def one(kind: str) -> Schema:
        return {"$ref": f"#/components/schemas/{name(kind)}"}

    def many(kind: str) -> Schema:
        return {"type": "array", "items": one(kind)}

    types: dict[str, dict[str, Schema]] = {
        _KIND: {
            "apiVersion": _STRING,
            "kind": _STRING,
            "jwt": many("JWTAuthenticator"),
            "anonymous": one("AnonymousAuthConfig"),
        },
        "AnonymousAuthConfig": {"enabled": {"type": "boolean"}, "conditions": many("AnonymousAuthCondition")},
        "AnonymousAuthCondition": {"path": _STRING},
        "JWTAuthenticator": {
            "issuer": one("Issuer"),
            "claimValidationRules": many("ClaimValidationRule"),
            "claimMappings": one("ClaimMappings"),
            "userValidationRules": many("UserValidationRule"),
        },
        "Issuer": {
            **dict.fromkeys(
                ("url", "discoveryURL", "certificateAuthority", "audienceMatchPolicy", "egressSelectorType"), _STRING
            ),
            "audiences": {"type": "array", "items": _STRING},
        },
        "ClaimValidationRule": dict.fromkeys(("claim", "requiredValue", "expression", "message"), _STRING),
        "ClaimMappings": {
            "username": one("PrefixedClaimOrExpression"),
            "groups": one("PrefixedClaimOrExpression"),
            "uid": one("ClaimOrExpression"),
            "extra": many("ExtraMapping"),
        },
        "PrefixedClaimOrExpression": dict.fromkeys(("claim", "prefix", "expression"), _STRING),
        "ClaimOrExpression": dict.fromkeys(("claim", "expression"), _STRING),
        "ExtraMapping": dict.fromkeys(("key", "valueExpression"), _STRING),
        "UserValidationRule": dict.fromkeys(("expression", "message"), _STRING),
    }
    return {name(kind): {"type": "object", "properties": properties} for kind, properties in types.items()}
