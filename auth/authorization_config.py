"""The file of --authorization-config: AuthorizationConfiguration of apiserver.config.k8s.io.

Upstream: k8s.io/apiserver/pkg/apis/apiserver/{load,v1/types.go,v1/defaults.go,validation/validation.go},
k8s.io/kubernetes/pkg/kubeapiserver/authorizer/config.go.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.cel import typed
from fakeapiserver.apimachinery.duration import format_duration, parse_duration
from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.field import Path as FieldPath
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.auth import match_conditions as match_conditions_module

MODES: Final = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
GROUP: Final = "apiserver.config.k8s.io"
VERSIONS: Final = ("v1alpha1", "v1beta1", "v1")
_SWITCHES: Final = {"cacheAuthorizedRequests": "authorizedTTL", "cacheUnauthorizedRequests": "unauthorizedTTL"}
_TIMES: Final = {"authorizedTTL": 300.0, "unauthorizedTTL": 30.0, "timeout": 0.0}
_MAX_CONDITIONS: Final = 64
_MAX_TIMEOUT: Final = 30.0


class WebhookConfiguration(Struct, frozen=True, kw_only=True):
    """Seconds; a time of 0 remembers nothing. `kubeconfig` None: this very cluster's."""

    timeout: float = 30.0
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    version: str = "v1beta1"
    denies_on_failure: bool = False
    kubeconfig: Path | None = None
    match_conditions: tuple[str, ...] = ()


class AuthorizerConfiguration(Struct, frozen=True):
    type: str
    name: str
    webhook: WebhookConfiguration | None = None


def from_modes(modes: Sequence[str], webhook: WebhookConfiguration) -> tuple[AuthorizerConfiguration, ...]:
    """Converts the flags to the file's form."""
    return tuple(
        AuthorizerConfiguration(mode, "default", webhook)
        if mode == "Webhook"
        else AuthorizerConfiguration(mode, mode.lower())
        for mode in modes
    )


def read(
    data: bytes, required: frozenset[str] = frozenset(), version: str = NEWEST
) -> tuple[AuthorizerConfiguration, ...]:
    """ValueError with upstream's text; `version` is Kubernetes's, `required` are the modes that must still be there."""
    try:
        document = _decoded(data)
    except ValueError as error:
        raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    rows: list[Object] = document.get("authorizers") or []
    if errors := _errors(rows, version):
        raise ValueError(aggregated(errors))
    problems = [
        f"expected name {row['type'].lower()} for authorizer {row['type']} instead of {row['name']}"
        for row in rows
        if row["type"] != "Webhook" and row["name"] != row["type"].lower()
    ]
    if missing := sorted(required - {row["type"] for row in rows}):
        problems.append(f"missing required types: [{' '.join(missing)}]")
    if problems:
        raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return tuple(_configuration(row) for row in rows)


# --------------------------------------------------------------------- decoding

_KIND: Final = ConfigKind(
    "AuthorizationConfiguration",
    tuple(f"{GROUP}/{version}" for version in VERSIONS),
    {
        "AuthorizationConfiguration": {"authorizers": "[]AuthorizerConfiguration"},
        "AuthorizerConfiguration": {"type": "string", "name": "string", "webhook": "WebhookConfiguration"},
        "WebhookConfiguration": {
            **dict.fromkeys(_TIMES, "Duration"),
            **dict.fromkeys(_SWITCHES, "bool"),
            **dict.fromkeys(("subjectAccessReviewVersion", "matchConditionSubjectAccessReviewVersion"), "string"),
            "failurePolicy": "string",
            "connectionInfo": "WebhookConnectionInfo",
            "matchConditions": "[]WebhookMatchCondition",
        },
        "WebhookConnectionInfo": {"type": "string", "kubeConfigFile": "string"},
        "WebhookMatchCondition": {"expression": "string"},
    },
)


def _decoded(data: bytes) -> Object:
    """Times are in seconds, those that are left out have their defaults. ValueError."""
    document = _KIND.decode(data) if data else {}
    for row in document.get("authorizers") or ():
        if (webhook := row.get("webhook")) is not None:
            for name, default in _TIMES.items():
                webhook[name] = parse_duration(webhook.get(name) or "0") or default
    return document


# ------------------------------------------------------------------- validation


def _errors(rows: Sequence[Mapping[str, Any]], version: str) -> ErrorList:
    if not rows:
        return [field.required("authorizers", "at least one authorization mode must be defined")]
    errors: ErrorList = []
    types, seen = set[str](), set[str]()
    for i, row in enumerate(rows):
        path, mode, name = FieldPath("authorizers").index(i), row.get("type") or "", row.get("name") or ""
        if not mode:
            errors.append(field.required(path.child("type"), ""))
            continue
        if mode not in MODES:
            errors.append(field.not_supported(path.child("type"), mode, sorted(MODES)))
            continue
        if mode in types and mode != "Webhook":
            errors.append(field.duplicate(path.child("type"), mode))
            continue
        types.add(mode)
        errors += _name_errors(name, seen, path.child("name"))
        seen.add(name)
        webhook = row.get("webhook")
        if mode == "Webhook":
            missing = field.required(path.child("webhook"), "required when type=Webhook")
            errors += [missing] if webhook is None else _webhook_errors(webhook, path, version)
        elif webhook is not None:
            errors.append(field.invalid(path.child("webhook"), "non-null", "may only be specified when type=Webhook"))
    return errors


def _name_errors(name: str, seen: set[str], path: FieldPath) -> ErrorList:
    if not name:
        return [field.required(path, "")]
    if name in seen:
        return [field.duplicate(path, name)]
    problems = names.is_dns1123_subdomain(name)
    return [field.invalid(path, name, f"authorizer name is invalid: {', '.join(problems)}")] if problems else []


def _webhook_errors(webhook: Mapping[str, Any], path: FieldPath, version: str) -> ErrorList:
    errors: ErrorList = []
    timeout = webhook["timeout"]
    if not timeout:
        errors.append(field.required(path.child("timeout"), ""))
    elif not 0 < timeout <= _MAX_TIMEOUT:
        errors.append(field.invalid(path.child("timeout"), format_duration(timeout), "must be > 0s and <= 30s"))
    for name in ("authorizedTTL", "unauthorizedTTL"):
        if webhook[name] < 0:
            errors.append(field.invalid(path.child(name), format_duration(webhook[name]), "must be > 0s"))
    errors += _choice(webhook, "subjectAccessReviewVersion", ("v1", "v1beta1"), path)
    conditions, wanted = webhook.get("matchConditions") or (), "matchConditionSubjectAccessReviewVersion"
    if webhook.get(wanted):
        errors += _choice(webhook, wanted, ("v1",), path)
    elif conditions:
        errors.append(field.required(path.child(wanted), "required if match conditions are specified"))
    errors += _choice(webhook, "failurePolicy", ("NoOpinion", "Deny"), path)
    errors += _connection_errors(webhook.get("connectionInfo") or {}, path.child("connectionInfo"))
    return [*errors, *_condition_errors(conditions, path.child("matchConditions"), version)]


def _choice(webhook: Mapping[str, Any], name: str, choices: Sequence[str], path: FieldPath) -> ErrorList:
    value = webhook.get(name) or ""
    if not value:
        return [field.required(path.child(name), "")]
    return [] if value in choices else [field.not_supported(path.child(name), value, choices)]


def _connection_errors(info: Mapping[str, Any], path: FieldPath) -> ErrorList:
    kind, file = info.get("type") or "", info.get("kubeConfigFile")
    at = path.child("kubeConfigFile")
    if not kind:
        return [field.required(path.child("type"), "")]
    if kind == "InClusterConfig":
        return [] if file is None else [field.invalid(at, file, "can only be set when type=KubeConfigFile")]
    if kind != "KubeConfigFile":
        shown = {"Type": kind, "KubeConfigFile": file}
        return [field.not_supported(path.child("type"), shown, ("InClusterConfig", "KubeConfigFile"))]
    if not file:
        return [field.required(at, "")]
    if not os.path.isabs(file):
        return [field.invalid(at, file, "must be an absolute path")]
    try:
        os.stat(file)
    except OSError as error:
        why = (error.strerror or "").lower()
        return [field.invalid(at, file, f"error loading file: stat {file}: {why}")]
    return [] if os.path.isfile(file) else [field.invalid(at, file, "must be a regular file")]


def _condition_errors(conditions: Sequence[Mapping[str, Any]], path: FieldPath, version: str) -> Iterator[field.Error]:
    if len(conditions) > _MAX_CONDITIONS:
        yield field.too_many(path, len(conditions), _MAX_CONDITIONS)
        return
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        at, expression = path.index(i).child("expression"), condition.get("expression") or ""
        if not expression.strip():
            yield field.required(at, "")
        elif expression in seen:
            yield field.duplicate(at, expression)
        else:
            seen.add(expression)
            try:
                match_conditions_module.compile_condition(expression, version)
            except typed.InstantiationError as error:
                yield field.internal(at, str(error))
            except ValueError as error:
                yield field.invalid(at, expression, str(error))


def _configuration(row: Mapping[str, Any]) -> AuthorizerConfiguration:
    webhook = row.get("webhook")
    if webhook is None:
        return AuthorizerConfiguration(row["type"], row["name"])
    info = webhook["connectionInfo"]
    remembers = {name: 0.0 if webhook.get(switch) is False else webhook[name] for switch, name in _SWITCHES.items()}
    settings = WebhookConfiguration(
        timeout=webhook["timeout"],
        authorized_ttl=remembers["authorizedTTL"],
        unauthorized_ttl=remembers["unauthorizedTTL"],
        version=webhook["subjectAccessReviewVersion"],
        denies_on_failure=webhook["failurePolicy"] == "Deny",
        kubeconfig=Path(info["kubeConfigFile"]) if info["type"] == "KubeConfigFile" else None,
        match_conditions=tuple(condition["expression"] for condition in webhook.get("matchConditions") or ()),
    )
    return AuthorizerConfiguration(row["type"], row["name"], settings)
