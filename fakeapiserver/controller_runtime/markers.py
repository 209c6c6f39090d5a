"""What the manifests of an operator are made from, said where it belongs: on kinds, reconcilers and webhooks.

Decorators that only note something down; `fakeapiserver manifests` reads it.
Upstream: sigs.k8s.io/controller-tools (the +kubebuilder markers).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fakeapiserver.controller_runtime import scheme

T = TypeVar("T", bound=type[Any])
RESOURCE: Final = "__kubernetes_resource__"
RULES: Final = "__kubernetes_rbac__"
WEBHOOKS: Final = "__kubernetes_webhooks__"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. `type`: string, integer, number, boolean or date; `priority` above 0 is for `-o wide`."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource's JSON paths."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """What a CustomResourceDefinition says beside its schema."""

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


@dataclass(frozen=True, slots=True)
class Rule:
    """An RBAC rule."""

    groups: Sequence[str]
    resources: Sequence[str]
    verbs: Sequence[str]
    resource_names: Sequence[str] = ()
    urls: Sequence[str] = ()
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class WebhookMarker:
    """A webhook's entry in a webhook configuration."""

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
    """A model is a version of a custom resource. `plural` is made of the kind by default; `status` and `scale` are its subresources;
    `storage`: objects are stored in this version; `deprecated`: a warning for those who use it ("" for the usual one)."""

    def marked(found: T) -> T:
        setattr(
            found,
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
        scheme.kind(api_version, kind)(found)
        return found

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
    """A reconciler needs this: `@rbac(groups=["apps"], resources=["deployments"], verbs=["get", "list", "watch"])`. With `namespace`
    in that one only."""
    return _noting(RULES, Rule(groups, resources, verbs, resource_names, urls, namespace))


def webhook(
    *,
    path: str,
    mutating: bool,
    groups: Sequence[str],
    versions: Sequence[str],
    resources: Sequence[str],
    operations: Sequence[str] = ("CREATE", "UPDATE"),
    name: str,
    failure_policy: str = "Fail",
    side_effects: str = "None",
    timeout_seconds: int | None = None,
) -> Callable[[T], T]:
    """The class serves a webhook at `path`; `name` is a domain name such as `vwidget.kb.io`."""
    return _noting(
        WEBHOOKS,
        WebhookMarker(
            name,
            path,
            mutating,
            groups,
            versions,
            resources,
            operations,
            failure_policy,
            side_effects,
            timeout_seconds,
        ),
    )


def noted(found: type[Any], what: str) -> Any:
    """What a decorator noted on the class itself, or nothing."""
    return vars(found).get(what)


def _noting(what: str, note: object) -> Callable[[T], T]:
    def marked(found: T) -> T:
        setattr(found, what, (note, *(noted(found, what) or ())))
        return found

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
