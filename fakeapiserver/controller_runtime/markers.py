"""Markers on kinds, reconcilers and webhooks, from which the manifests of an operator are made.

The decorators only record their arguments; `fakeapiserver manifests` reads them.
Upstream: sigs.k8s.io/controller-tools (the +kubebuilder markers).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Required, TypedDict, TypeVar

from msgspec import Struct

from fakeapiserver.controller_runtime import scheme

__all__ = [
    "RESOURCE",
    "RULES",
    "WEBHOOKS",
    "Column",
    "Resource",
    "Rule",
    "Scale",
    "Validation",
    "WebhookMarker",
    "at_most_one_of",
    "builtin",
    "embedded_resource",
    "exactly_one_of",
    "immutable",
    "list_atomic",
    "list_map",
    "list_set",
    "map_atomic",
    "noted",
    "nullable",
    "plural_of",
    "preserve_unknown_fields",
    "rbac",
    "resource",
    "rules",
    "webhook",
]

T = TypeVar("T", bound=type[Any])
RESOURCE: Final = "__kubernetes_resource__"
RULES: Final = "__kubernetes_rbac__"
WEBHOOKS: Final = "__kubernetes_webhooks__"


class Column(Struct, frozen=True):
    """A column of `kubectl get`. `type`: string, integer, number, boolean or date; `priority` above 0 is for `-o wide`."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


class Scale(Struct, frozen=True):
    """The scale subresource's JSON paths."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str = ""


class Resource(Struct, frozen=True):
    """The parts of a CustomResourceDefinition besides its schema."""

    plural: str
    singular: str
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    scope: str = "Namespaced"
    status: bool = True
    scale: Scale | None = None
    columns: Sequence[Column] = ()
    selectable_fields: Sequence[str] = ()
    storage: bool = True
    served: bool = True
    deprecated: str | None = None


class Rule(Struct, frozen=True):
    """An RBAC rule."""

    groups: Sequence[str]
    resources: Sequence[str]
    verbs: Sequence[str]
    resource_names: Sequence[str] = ()
    urls: Sequence[str] = ()
    namespace: str = ""


class WebhookMarker(Struct, frozen=True):
    """A webhook's entry in a webhook configuration; `webhook` describes its fields."""

    name: str
    path: str
    mutating: bool
    groups: Sequence[str]
    versions: Sequence[str]
    resources: Sequence[str]
    operations: Sequence[str]
    failure_policy: str = "Fail"
    side_effects: str = "None"
    timeout_seconds: int | None = None
    match_policy: str = ""
    reinvocation_policy: str = ""
    admission_review_versions: Sequence[str] = ("v1",)
    service_name: str = "webhook-service"
    service_namespace: str = "system"
    service_port: int | None = None
    url: str = ""


def resource(
    api_version: str,
    kind: str,
    *,
    plural: str = "",
    singular: str = "",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    cluster_scoped: bool = False,
    status: bool = True,
    scale: Scale | None = None,
    columns: Sequence[Column] = (),
    selectable_fields: Sequence[str] = (),
    storage: bool = True,
    served: bool = True,
    deprecated: str | None = None,
) -> Callable[[T], T]:
    """Marks a model as a version of a custom resource.

    `plural` is made of the kind by default; `status` and `scale` are its subresources; `storage`: objects are
    stored in this version;
    `deprecated`: a warning for its users ("" for the usual one).
    """

    def marked(cls: T) -> T:
        setattr(
            cls,
            RESOURCE,
            Resource(
                plural or plural_of(kind),
                singular or kind.lower(),
                short_names,
                categories,
                "Cluster" if cluster_scoped else "Namespaced",
                status,
                scale,
                columns,
                selectable_fields,
                storage,
                served,
                deprecated,
            ),
        )
        scheme.kind(api_version, kind)(cls)
        return cls

    return marked


def rbac(
    *,
    groups: Sequence[str] = (),
    resources: Sequence[str] = (),
    verbs: Sequence[str],
    resource_names: Sequence[str] = (),
    urls: Sequence[str] = (),
    namespace: str = "",
) -> Callable[[T], T]:
    """A reconciler needs this: `@rbac(groups=["apps"], resources=["deployments"], verbs=["get", "list", "watch"])`. The group of
    pods and their like is "" or "core". With `namespace` in that one only; with `urls`, such as /metrics, not of a resource.

    TypeError for a string where a list of strings is meant.
    """
    for name, words in (("groups", groups), ("resources", resources), ("verbs", verbs), ("urls", urls)):
        _check_words("rbac", name, words)
    return _noting(RULES, Rule(groups, resources, verbs, resource_names, urls, namespace))


def webhook(
    *,
    path: str = "",
    mutating: bool,
    groups: Sequence[str],
    versions: Sequence[str],
    resources: Sequence[str],
    operations: Sequence[str] = ("CREATE", "UPDATE"),
    name: str,
    failure_policy: str = "Fail",
    side_effects: str = "None",
    timeout_seconds: int | None = None,
    match_policy: str = "",
    reinvocation_policy: str = "",
    admission_review_versions: Sequence[str] = ("v1",),
    service_name: str = "webhook-service",
    service_namespace: str = "system",
    service_port: int | None = None,
    url: str = "",
) -> Callable[[T], T]:
    """The class serves a webhook at `path` of a Service, or at a `url` outside of the cluster.

    name: a domain name such as `vwidget.kb.io`. groups: "" or "core" for pods and their like. operations: CREATE, UPDATE, DELETE,
    CONNECT or *. failure_policy: Fail (the default) or Ignore, when the webhook doesn't answer within `timeout_seconds` (1 to 30; the
    server's default is 10). side_effects: None (the default) or NoneOnDryRun. match_policy: Equivalent (the server's default) or
    Exact. reinvocation_policy: Never (the server's default) or IfNeeded.

    ValueError unless there is a path or a URL, and for words that the server doesn't know; TypeError for a string where a list of
    strings is meant.
    """
    if bool(path) is bool(url):
        raise ValueError(f"the webhook {name} needs a path or a url, and not both")
    for what, words in (
        ("groups", groups),
        ("versions", versions),
        ("resources", resources),
        ("operations", operations),
    ):
        _check_words(name, what, words)
    return _noting(
        WEBHOOKS,
        WebhookMarker(
            name,
            path,
            mutating,
            groups,
            versions,
            resources,
            [_one_of(name, "operation", word, ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")) for word in operations],
            _one_of(name, "failure_policy", failure_policy, ("Fail", "Ignore")),
            _one_of(name, "side_effects", side_effects, ("None", "NoneOnDryRun")),
            timeout_seconds,
            _one_of(name, "match_policy", match_policy, ("", "Exact", "Equivalent")),
            _one_of(name, "reinvocation_policy", reinvocation_policy, ("", "Never", "IfNeeded")),
            admission_review_versions,
            service_name,
            service_namespace,
            service_port,
            url,
        ),
    )


def _one_of(name: str, what: str, word: str, known: Sequence[str]) -> str:
    """Returns the word in upstream's spelling; like upstream's markers it ignores case."""
    match = next((row for row in known if row.lower() == word.lower()), None)
    if match is None:
        raise ValueError(f"the webhook {name}: {what} {word!r} is not one of {', '.join(filter(None, known))}")
    return match


def _check_words(name: str, what: str, words: Sequence[str]) -> None:
    if isinstance(words, str):
        raise TypeError(f"{name}: {what} is a list of strings, not {words!r}")


class Validation(TypedDict, total=False):
    """A rule in CEL, as a definition has it; only `rule` is needed.

    `message` is the error when it fails, or `messageExpression`, a string in CEL; `reason` one of FieldValueInvalid (the
    default), FieldValueForbidden, FieldValueRequired, FieldValueDuplicate; `fieldPath` where, such as ".replicas".
    """

    rule: Required[str]
    message: str
    messageExpression: str
    reason: str
    fieldPath: str
    optionalOldSelf: bool


def rules(*validations: Validation) -> dict[str, Any]:
    """For `Field(json_schema_extra=…)`, `ConfigDict(json_schema_extra=…)` and `msgspec.Meta(extra_json_schema=…)`, as all that
    follow; several are joined by `|`.

    size: int = Field(json_schema_extra=rules({"rule": "self >= oldSelf", "message": "may not shrink"}))
    """
    return {"x-kubernetes-validations": [*validations]}


def immutable(what: str = "it") -> dict[str, Any]:
    """Can't be changed once it is there."""
    return rules({"rule": "self == oldSelf", "message": f"{what} can't be changed"})


def exactly_one_of(*names: str) -> dict[str, Any]:
    """Requires that exactly one of a model's fields is set. Names are the fields' JSON names."""
    return rules(
        {"rule": f"{_given(names)} == 1", "message": f"exactly one of the fields in [{' '.join(names)}] must be set"}
    )


def at_most_one_of(*names: str) -> dict[str, Any]:
    """Requires that at most one of a model's fields is set. Names are the fields' JSON names."""
    return rules(
        {"rule": f"{_given(names)} <= 1", "message": f"at most one of the fields in [{' '.join(names)}] may be set"}
    )


def _given(names: Sequence[str]) -> str:
    return f"[{','.join(f'has(self.{name})' for name in names)}].filter(x,x==true).size()"


def list_map(*keys: str) -> dict[str, Any]:
    """Declares a list as a map:

    items are identified by these fields, by their JSON names, and each has its own owners.
    """
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]}


def list_set() -> dict[str, Any]:
    """A list of values that differ."""
    return {"x-kubernetes-list-type": "set"}


def list_atomic() -> dict[str, Any]:
    """A list that is replaced as a whole."""
    return {"x-kubernetes-list-type": "atomic"}


def map_atomic() -> dict[str, Any]:
    """An object that is replaced as a whole."""
    return {"x-kubernetes-map-type": "atomic"}


def nullable() -> dict[str, Any]:
    """null is a value of its own."""
    return {"nullable": True}


def preserve_unknown_fields() -> dict[str, Any]:
    """Fields that the schema doesn't know are kept."""
    return {"x-kubernetes-preserve-unknown-fields": True}


def embedded_resource() -> dict[str, Any]:
    """A whole object of whatever kind, for a dict: apiVersion, kind and metadata are checked."""
    return {"type": "object", "x-kubernetes-embedded-resource": True, **preserve_unknown_fields()}


def builtin(name: str) -> dict[str, Any]:
    """Declares a dict as one of Kubernetes' own types, by its name in OpenAPI.

    template: dict[str, Any] = Field(json_schema_extra=builtin("io.k8s.api.core.v1.PodTemplateSpec"))
    """
    return {"x-fakeapiserver-builtin": name}


def noted(cls: type[Any], what: str) -> Any:
    """Returns what a decorator recorded on the class itself, or None."""
    return vars(cls).get(what)


def _noting(what: str, note: object) -> Callable[[T], T]:
    def marked(cls: T) -> T:
        setattr(cls, what, (note, *(noted(cls, what) or ())))
        return cls

    return marked


_PLURALS: Final[Mapping[str, str]] = {"s": "ses", "x": "xes", "z": "zes", "ch": "ches", "sh": "shes"}


def plural_of(kind: str) -> str:
    """`gateways` of Gateway, `policies` of Policy, `classes` of Class."""
    word = kind.lower()
    for end, plural in _PLURALS.items():
        if word.endswith(end):
            return word[: -len(end)] + plural
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"
