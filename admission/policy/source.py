"""The policies that are in force: those with bindings, and which of them a write concerns.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/{generic/policy_source,generic/policy_dispatcher,matching/matching}.go.
"""

from collections.abc import Iterable
from typing import ClassVar, Final, Generic, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.admission import static_manifests
from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.webhook.matching import (
    Matched,
    found_namespace,
    has_labels,
    in_namespace,
    in_version,
    matched,
    namespace_of,
    operates,
)
from fakeapiserver.admission.webhook.review import Subject
from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.apis.recorded import NEWEST

# Policies themselves, so that their writers can't be locked out, and reviews of identities and permissions, which policies
# could ask themselves.
_EXCLUDED: Final = frozenset(
    {
        GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
        GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
        GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
    }
)


# Groups whose kinds upstream reads as it reads custom resources.
_UNTYPED: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
_TYPE: Final = frozenset({"apiVersion", "kind"})


# Operation, group, resource and subresource. Kinds come and go with CRDs; a table this large is thrown away and refilled.
_Sort = tuple[str, str, str, str]
_MAX_SORTS: Final = 4096


class ConfigurationError(Exception):
    """A policy or binding can't be used as it is; the failure policy decides."""


class Criteria(Struct, frozen=True):
    """MatchResources, with its selectors parsed."""

    resources: Object
    namespace_selector: Selector
    object_selector: Selector


def criteria_of(resources: Object | None) -> Criteria | None:
    if resources is None:
        return None
    selectors = (labels.from_label_selector(resources.get(f"{what}Selector") or {}) for what in ("namespace", "object"))
    return Criteria(resources, *selectors)


class Binding(Struct, frozen=True):
    name: str
    spec: Object
    criteria: Criteria | None


class Hook(Struct, frozen=True, dict=True):
    """A policy and its bindings. Subclasses compile its expressions when they are first needed, in the CEL of a Kubernetes
    `version`."""

    name: str
    revision: str
    spec: Object
    criteria: Criteria | None
    bindings: tuple[Binding, ...]
    version: str = NEWEST

    def bound(self, bindings: tuple[Binding, ...]) -> Self:
        """The same policy, which needn't be compiled again."""
        other = replace(self, bindings=bindings)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def param_kind(self) -> GroupVersionKind | None:
        if (kind := self.spec.get("paramKind")) is None:
            return None
        group, _, version = kind["apiVersion"].rpartition("/")
        return GroupVersionKind(group, version, kind["kind"])


H = TypeVar("H", bound=Hook)


class PolicyPlugin(Handler, Generic[H]):
    """`policies` and `policy_bindings` are the stored objects; `hook` is what becomes of a policy."""

    subresources = True
    policies: ClassVar[str]
    policy_bindings: ClassVar[str]
    # Whether params of built-in kinds have their kind and apiVersion.
    types_params: ClassVar[bool] = True
    hook: type[H]

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        name = type(self).__name__
        if (document := initializer.configuration.get(name)) is not None:
            kind = f"{name}Configuration"
            fields = {kind: {static_manifests.FIELD: "string"}}
            configuration = ConfigKind(kind, ("apiserver.config.k8s.io/v1",), fields).read(document)
            static_manifests.check(configuration.get(static_manifests.FIELD) or "", initializer.features)
        self._hooks: tuple[H, ...] = ()
        # Those that a sort of writes may concern.
        self._concerned: dict[_Sort, tuple[H, ...]] = {}
        self._generation = -1

    def hooks(self, attributes: Attributes) -> tuple[H, ...]:
        """Returns the policies that may concern this write; they are read again after a change of any policy or
        binding.
        """
        getter = self.initializer.getter
        generation = getter.generation((self.policies, self.policy_bindings))
        if generation != self._generation:
            self._hooks = self._read()
            self._generation, self._concerned = generation, {}
        if not self._hooks:
            return ()
        resource = attributes.resource
        sort = (attributes.operation, resource.group, resource.resource, attributes.subresource)
        concerned = self._concerned.get(sort)
        if concerned is None:
            if len(self._concerned) >= _MAX_SORTS:
                self._concerned.clear()
            concerned = self._concerned[sort] = self._concerning(attributes)
        return concerned

    def _concerning(self, attributes: Attributes) -> tuple[H, ...]:
        """Returns the policies whose rules may match, regardless of version, scope and name.

        A resource may be served in other versions, and events in another group.
        """
        if attributes.resource.group_resource in _EXCLUDED:
            return ()
        others = self.initializer.versions.equivalents(attributes.resource, attributes.kind)
        groups = {"*", attributes.resource.group, *(resource.group for resource, _ in others)}
        return tuple(hook for hook in self._hooks if _may_concern(hook, attributes, groups))

    def _read(self) -> tuple[H, ...]:
        bindings: dict[str, list[Binding]] = {}
        for stored in _by_name(self.initializer.getter.list(self.policy_bindings)):
            spec = stored["spec"]
            binding = Binding(metadata(stored)["name"], spec, criteria_of(spec.get("matchResources")))
            bindings.setdefault(spec.get("policyName", ""), []).append(binding)
        before = {(hook.name, hook.revision): hook for hook in self._hooks}
        hooks, version = [], self.initializer.features.version
        for policy in _by_name(self.initializer.getter.list(self.policies)):
            name, revision, spec = metadata(policy)["name"], metadata(policy)["resourceVersion"], policy["spec"]
            if name not in bindings:
                continue
            hook = before.get((name, revision))
            if hook is None:
                hook = self.hook(name, revision, spec, criteria_of(spec.get("matchConstraints")), (), version)
            hooks.append(hook.bound(tuple(bindings[name])))
        return tuple(hooks)

    def match(self, hook: Hook, attributes: Attributes) -> Matched | None:
        """Returns the write as the policy sees it, or None if the policy doesn't concern it.

        Raises ConfigurationError.
        """
        if hook.criteria is None:
            raise ConfigurationError("policy contained no match constraints, a required field")
        match = self._matched(hook.criteria, attributes)
        if (
            match is None
            or (kind := hook.param_kind) is None
            or self.initializer.versions.resource_of(kind) is not None
        ):
            return match
        shown = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")

    def binds(self, binding: Binding, attributes: Attributes) -> bool:
        """ConfigurationError."""
        return binding.criteria is None or self._matched(binding.criteria, attributes) is not None

    def _matched(self, criteria: Criteria, attributes: Attributes) -> Matched | None:
        problem: StatusError | None = None
        try:
            if not in_namespace(criteria.namespace_selector, attributes, self.initializer.getter):
                return None
        except StatusError as error:
            problem = error  # raised only if the policy would have applied
        if not has_labels(criteria.object_selector, attributes):
            return None
        resources, versions = criteria.resources, self.initializer.versions
        policy, rules = resources.get("matchPolicy", ""), resources.get("resourceRules") or ()
        if matched(resources.get("excludeResourceRules") or (), policy, attributes, versions) is not None:
            return None
        match = (attributes.resource, attributes.kind)
        if rules and (match := matched(rules, policy, attributes, versions)) is None:  # type: ignore[assignment]
            return None
        if problem is not None:
            raise ConfigurationError(problem.message)
        return match

    async def subject(self, matched: Matched, attributes: Attributes) -> Subject:
        """ConfigurationError."""
        (resource, kind), versions = matched, self.initializer.versions
        try:
            obj = await in_version(attributes.object, kind, versions)
            return Subject(resource, kind, obj, await in_version(attributes.old_object, kind, versions))
        except StatusError as error:
            raise ConfigurationError(f"failed to convert object version: {error.message}") from None

    def namespace(self, attributes: Attributes) -> Object | None:
        """Returns the object's namespace, or None for cluster-scoped objects. Raises StatusError 404."""
        if not attributes.namespace or attributes.kind == GroupVersionKind("", "v1", "Namespace"):
            return None
        return found_namespace(attributes.namespace, self.initializer.getter)

    async def params(self, hook: Hook, binding: Binding, attributes: Attributes) -> list[Object | None]:
        """Returns the params to evaluate a policy with, each in turn; None means without. Raises ConfigurationError."""
        kind, reference = hook.param_kind, binding.spec.get("paramRef")
        if kind is None or reference is None:
            return [None]
        served = self.initializer.versions.resource_of(kind)
        assert served is not None, "match() has looked"
        resource, namespaced = served
        namespace = reference.get("namespace") or (namespace_of(attributes) if namespaced else "")
        if namespace and not namespaced:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if namespaced and not namespace:
            raise ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        params_found = self._params(_named(resource.group_resource), namespace, reference)
        if not params_found and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        params = [await in_version({**param}, kind, self.initializer.versions) for param in params_found]
        if self.types_params or kind.group in _UNTYPED or self.initializer.versions.is_custom(kind):
            return params
        return [{key: item for key, item in param.items() if key not in _TYPE} for param in params if param is not None]

    def _params(self, resource: str, namespace: str, reference: Object) -> list[Object]:
        getter = self.initializer.getter
        if name := reference.get("name"):
            param = getter.get(resource, namespace, name)
            return [] if param is None else [param]
        selector = labels.from_label_selector(reference.get("selector") or {})
        return [obj for obj in getter.list(resource, namespace) if selector.matches(metadata(obj).get("labels") or {})]


def _may_concern(hook: Hook, attributes: Attributes, groups: set[str]) -> bool:
    if hook.criteria is None:
        return True  # the error about missing constraints follows
    return any(
        operates(rule, attributes) and not groups.isdisjoint(rule.get("apiGroups") or ())
        for rule in hook.criteria.resources.get("resourceRules") or ()
    )


def _by_name(objects: Iterable[Object]) -> list[Object]:
    return sorted(objects, key=lambda obj: str(metadata(obj)["name"]))


def _named(resource: GroupResource) -> str:
    return f"{resource.resource}.{resource.group}" if resource.group else resource.resource
