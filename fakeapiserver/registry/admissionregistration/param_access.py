"""The guard of policies and bindings: users that name params must be allowed to read them.

Upstream: pkg/registry/admissionregistration/{mutating,validating}admissionpolicy{,binding}/authz.go.
"""

from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery.field import ErrorList, Path, forbidden
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, UserInfo
from fakeapiserver.registry.generic.write_request import Guard, WriteRequest

GROUP: Final = "admissionregistration.k8s.io"
_MASTERS: Final = "system:masters"
_SPEC: Final = Path("spec")
ResourceOf = Callable[[GroupVersionKind], tuple[GroupVersionResource, bool] | None]


class ParamAccess(Guard):
    """The guard of one of the four resources, which checks valid objects."""

    def __init__(self, resource: str, authorizer: Authorizer, objects: ObjectReader, resource_of: ResourceOf) -> None:
        self.resource, self.authorizer, self.objects, self.resource_of = resource, authorizer, objects, resource_of

    async def errors(self, request: WriteRequest, obj: Object, old: Object | None, errors: ErrorList) -> ErrorList:
        if errors or _MASTERS in request.user.groups or request.subresource:
            return errors
        spec, before = obj["spec"], None if old is None else old["spec"]
        if self.resource.endswith("bindings"):
            same = before is not None and all(before.get(key) == spec.get(key) for key in ("paramRef", "policyName"))
            field = "paramRef"
            problem = "" if spec.get(field) is None or same else await self._binding(spec, request.user)
        else:
            same = before is not None and before.get("paramKind") == spec.get("paramKind")
            field = "paramKind"
            problem = "" if spec.get(field) is None or same else await self._policy(spec, request.user)
        return [forbidden(_SPEC.child(field), problem)] if problem else []

    async def _policy(self, spec: Object, user: UserInfo) -> str:
        kind = spec["paramKind"]
        group, version, resource = self._resolved(kind)
        refusal = await self._allowed(user, "get", (group, version, resource or "*"), name="*", namespace="*")
        param_kind = f"(kind={kind['kind']}, apiVersion={kind['apiVersion']})"
        refused = (
            f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind {param_kind}'
        )
        return refusal if refusal is not None else refused

    async def _binding(self, spec: Object, user: UserInfo) -> str:
        reference, name = spec["paramRef"], spec.get("policyName", "")
        policy = self.objects.get(f"{self.resource.removesuffix('ybindings')}ies.{GROUP}", "", name)
        kind = None if policy is None else policy["spec"].get("paramKind")
        group, version, resource = ("*", "*", "*") if kind is None else self._resolved(kind)
        verb = "get" if reference.get("name") else "list"
        named = {"name": reference.get("name", ""), "namespace": reference.get("namespace", "")}
        refusal = await self._allowed(user, verb, (group, version, resource or "*"), **named)
        mutates = self.resource.startswith("mutating")
        if refusal is not None:
            return f"failed to authorize request: {refusal}" if refusal and not mutates else refusal
        lacking = f'user {_shown(user)} does not have "{verb}" permission'
        minimum = f"to determine minimum required permissions and {lacking} for all groups, versions and resources"
        if policy is None:
            return f"unable to get policy {name} {minimum}"
        if kind is not None and not resource:
            return f"unable to resolve paramKind &{{{kind['apiVersion']} {kind['kind']}}} {minimum}"
        if mutates:  # upstream has them the wrong way round
            lacking = f'user {verb} does not have "{_shown(user)}" permission'
        return f"{lacking} on the object referenced by paramRef"

    def _resolved(self, kind: Object) -> tuple[str, str, str]:
        """Group, version and resource; no resource where the kind isn't served."""
        gv = GroupVersion.parse(kind["apiVersion"])
        served = self.resource_of(GroupVersionKind(gv.group, gv.version, kind["kind"]))
        return gv.group, gv.version, "" if served is None else served[0].resource

    async def _allowed(
        self, user: UserInfo, verb: str, what: tuple[str, str, str], *, name: str, namespace: str
    ) -> str | None:
        """Returns an empty text if the user is allowed, None if not, and the error if the authorizer failed."""
        group, version, resource = what
        attributes = Attributes(
            user=user,
            verb=verb,
            resource_request=True,
            api_group=group,
            api_version=version,
            resource=resource,
            namespace=namespace,
            name=name,
        )
        try:
            decision, _ = await self.authorizer.authorize(attributes)
        except EvaluationError as error:
            return str(error)
        return "" if decision is Decision.ALLOW else None


def _shown(user: UserInfo) -> str:
    """The user as Go prints the struct."""
    extra = " ".join(f"{key}:[{' '.join(user.extra[key])}]" for key in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
