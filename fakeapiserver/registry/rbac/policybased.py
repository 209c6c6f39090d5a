"""Prevents privilege escalation: users can grant only rights that they have, by roles and bindings.

Upstream: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go, escalation_check.go, helpers.go.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from fakeapiserver.apimachinery.allowance import LARGE
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_forbidden, new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.auth.authorizers.rbac_escalation import PolicyRule, escalation_message, rules_cover
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, UserInfo
from fakeapiserver.effort import computed
from fakeapiserver.registry.generic.write_request import Guard, WriteRequest

GROUP: Final = "rbac.authorization.k8s.io"
# Rules that are a large object, whatever is in them, and the bytes of one of their values.
_MANY: Final = 100
_VALUE: Final = 10
_MASTERS: Final = "system:masters"
_RESOURCES: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
# What the garbage collector changes.
_GC_FIELDS: Final = ("ownerReferences", "finalizers", "managedFields", "selfLink")
_FULL_AUTHORITY: Final[list[PolicyRule]] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


class Grant(NamedTuple):
    """Rights that a user has granted in a namespace (empty: everywhere). A user without these rights needs `verb` (escalate or
    bind) for `name` of the `resource`."""

    user: str
    namespace: str
    rules: list[PolicyRule]
    verb: str
    resource: str
    name: str


class RuleSource(Protocol):
    def policy_rules(self, user: UserInfo, namespace: str, resource: str = "") -> tuple[list[PolicyRule], str]:
        """Every rule the user has in a namespace (empty: cluster-wide), and what kept a binding from counting."""


class PolicyBased(Guard):
    """The guard of one of the four resources. Members of system:masters pass, and users who may `escalate` or `bind` the
    role; others must hold every right that the role has or the binding grants. `granted` is called with each grant that passes."""

    def __init__(
        self,
        resource: str,
        authorizer: Authorizer,
        rules: RuleSource,
        objects: ObjectReader,
        granted: Callable[[Grant], None] | None = None,
    ) -> None:
        self.resource, self.authorizer, self.rules, self.objects = resource, authorizer, rules, objects
        self.granted = granted

    async def check(self, request: WriteRequest, obj: Object, old: Object | None) -> None:
        """StatusError 403 with the rights that are missing; 404 for a binding to a role that isn't there."""
        if _MASTERS not in request.user.groups:
            await self._check(request, obj, old)
        if self.granted is not None and (old is None or not _only_gc_fields_differ(obj, old)):
            self.granted(self._grant(request, obj, old or {}))

    async def _check(self, request: WriteRequest, obj: Object, old: Object | None) -> None:
        if self.resource in _RESOURCES.values():
            if await self._allowed(request, "escalate", self.resource, request.name):
                return
            if old is None or not _only_gc_fields_differ(obj, old):
                await self._check_role(request, obj, old or {})
        elif old is None or not _only_gc_fields_differ(obj, old):
            await self._check_binding(request, obj)

    async def _check_role(self, request: WriteRequest, obj: Object, old: Object) -> None:
        await self._confirm(request, obj, obj.get("rules") or [])
        if self.resource == "clusterroles" and (_aggregates(obj) or _aggregates(old)):
            # the aggregated rules can be any, so all rights are required
            owned, _ = self.rules.policy_rules(request.user, request.namespace)
            if await _missing(owned, _FULL_AUTHORITY):
                raise self._forbidden(obj, "must have cluster-admin privileges to use the aggregationRule")

    async def _check_binding(self, request: WriteRequest, obj: Object) -> None:
        reference = obj.get("roleRef") or {}
        kind, name = reference.get("kind", ""), reference.get("name", "")
        resource = _RESOURCES.get(kind)
        if resource is None:
            return  # the binding is invalid, which validation reports later
        if await self._allowed(request, "bind", resource, name, reference.get("apiGroup", "")):
            return
        namespace = request.namespace if kind == "Role" else ""
        if kind == "Role" and not namespace:
            raise new_bad_request("Namespace parameter required.")
        if not name:
            raise new_bad_request("Name parameter required.")
        role = self.objects.get(f"{resource}.{GROUP}", namespace, name)
        if role is None:  # upstream calls it by the resource that is written
            raise new_not_found(GroupResource(GROUP, self.resource), name)
        await self._confirm(request, obj, role.get("rules") or [])

    def _grant(self, request: WriteRequest, obj: Object, old: Object) -> Grant:
        user, namespace = request.user.name, request.namespace
        if self.resource in _RESOURCES.values():
            rules = _FULL_AUTHORITY if _aggregates(obj) or _aggregates(old) else obj.get("rules") or []
            return Grant(user, namespace, rules, "escalate", self.resource, request.name)
        reference = obj.get("roleRef") or {}
        resource, name = _RESOURCES.get(reference.get("kind", ""), ""), reference.get("name", "")
        role = (
            self.objects.get(f"{resource}.{GROUP}", namespace if resource == "roles" else "", name)
            if resource
            else None
        )
        # a role that doesn't exist may only be bound by users with the verb `bind`
        return Grant(user, namespace, role.get("rules") or [] if role else _FULL_AUTHORITY, "bind", resource, name)

    async def _confirm(self, request: WriteRequest, obj: Object, wanted: list[PolicyRule]) -> None:
        owned, error = self.rules.policy_rules(request.user, request.namespace, self.resource)
        if missing := await _missing(owned, wanted):
            message = await computed(partial(escalation_message, request.user, missing, error), _size(missing))
            raise self._forbidden(obj, message)

    def _forbidden(self, obj: Object, message: str) -> StatusError:
        return new_forbidden(GroupResource(GROUP, self.resource), metadata(obj).get("name", ""), message)

    async def _allowed(self, request: WriteRequest, verb: str, resource: str, name: str, group: str = GROUP) -> bool:
        attributes = Attributes(
            user=request.user,
            verb=verb,
            resource_request=True,
            api_group=group,
            api_version="*",
            resource=resource,
            namespace=request.namespace,
            name=name,
        )
        try:
            decision, _ = await self.authorizer.authorize(attributes)
        except EvaluationError:  # an error of the authorizer is a refusal
            return False
        return decision is Decision.ALLOW


async def _missing(owned: list[PolicyRule], wanted: list[PolicyRule]) -> list[PolicyRule]:
    return await computed(partial(rules_cover, owned, wanted), _size(owned) + _size(wanted))


def _size(rules: list[PolicyRule]) -> int:
    """Returns about the bytes of rules; of many it doesn't count them all."""
    return LARGE if len(rules) > _MANY else _VALUE * sum(len(value or ()) for rule in rules for value in rule.values())


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_gc_fields_differ(obj: Object, old: Object) -> bool:
    return _without_gc_fields(obj) == _without_gc_fields(old)


def _without_gc_fields(obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name not in _GC_FIELDS and value}
    return {name: value for name, value in obj.items() if name != "metadata" and value} | {"metadata": meta}
