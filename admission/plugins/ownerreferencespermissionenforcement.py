"""Owners are changed by who may delete the dependent, and keep an owner from going only by who may write its finalizers.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/gc/gc_admission.go.
"""

from typing import Any

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.signers import is_allowed
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import Attributes as Wanted
from fakeapiserver.auth.interfaces import Decision, EvaluationError

_DELETE = "cannot set an ownerRef on a resource you can't delete: {}"
_BLOCK = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {}"


class OwnerReferencesPermissionEnforcement(Handler):
    subresources = True

    async def validate(self, attributes: Attributes) -> None:
        if attributes.subresource == "status" and attributes.resource.group_resource == PODS:
            return
        owners, before = _owners(attributes.object), _owners(attributes.old_object)
        if owners == before:
            return
        if attributes.operation != "CREATE":
            await self._require(attributes, _deletion(attributes), _DELETE)
        known = {owner.get("uid"): owner for owner in before}
        blocking = [o for o in owners if _blocks(o) and not _blocks(known.get(o.get("uid"), {}))]
        if blocking and not await self._is_allowed(_finalizers(attributes, "*", "*", "*", "*")):
            for owner in blocking:
                await self._check_owner(attributes, owner)

    async def _check_owner(self, attributes: Attributes, owner: Object) -> None:
        version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        gvk = GroupVersionKind(*GroupVersion.parse(version), kind)
        resource_name = self.initializer.versions.resource_of(gvk)
        if resource_name is None:
            why = f"no matches for kind {go_quote(kind)} in version {go_quote(version)}"
            place = f"for APIVersion {version} Kind {kind}"
            raise forbidden(
                attributes, f"cannot set blockOwnerDeletion in this case because cannot find RESTMapping {place}: {why}"
            )
        resource, namespaced = resource_name
        namespace = attributes.namespace if namespaced else ""
        wanted = _finalizers(attributes, *resource, owner.get("name", ""), namespace)
        await self._require(attributes, wanted, _BLOCK)

    async def _require(self, attributes: Attributes, wanted: Wanted, message: str) -> None:
        reason, error = "", "<nil>"
        if self.initializer.authorizer is None:
            return
        try:
            decision, reason = await self.initializer.authorizer.authorize(wanted)
        except EvaluationError as failure:
            decision, reason, error = failure.decision, failure.reason, str(failure)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, message.format(f"{reason}, {error}"))

    async def _is_allowed(self, wanted: Wanted) -> bool:
        return await is_allowed(self.initializer.authorizer, wanted)


def _owners(obj: Object | None) -> list[dict[str, Any]]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []


def _blocks(owner: Object) -> bool:
    return owner.get("blockOwnerDeletion") is True


def _deletion(attributes: Attributes) -> Wanted:
    return Wanted(
        user=attributes.user,
        verb="delete",
        resource_request=True,
        api_group=attributes.resource.group,
        api_version=attributes.resource.version,
        resource=attributes.resource.resource,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )


def _finalizers(
    attributes: Attributes, group: str, version: str, resource: str, name: str, namespace: str = ""
) -> Wanted:
    return Wanted(
        user=attributes.user,
        verb="update",
        resource_request=True,
        api_group=group,
        api_version=version,
        resource=resource,
        subresource="finalizers",
        namespace=namespace,
        name=name,
    )
