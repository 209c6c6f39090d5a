"""Access reviews: questions to the authorizers about a subject or the user itself. Sent by POST and never stored.

Upstream: pkg/registry/authorization/{selfsubjectaccessreview,subjectaccessreview,localsubjectaccessreview,selfsubjectrulesreview},
pkg/registry/authorization/util/helpers.go, pkg/apis/authorization/validation/validation.go.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.errors import new_bad_request, new_invalid
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.auth.interfaces import (
    Attributes,
    Authorizer,
    Decision,
    EvaluationError,
    RuleAuthorizer,
    RuleResolver,
    UserInfo,
)
from fakeapiserver.auth.selectors import Parsed, Selectors
from fakeapiserver.effort import computed
from fakeapiserver.endpoints.request import Request
from fakeapiserver.endpoints.scope import Virtual
from fakeapiserver.registry.generic.legacy_messages import ONE_OF_ATTRIBUTES, reworded_errors

# In the order of Go's type, as messages show it.
_MAPS: Final = frozenset({"annotations", "labels"})
_OWNER: Final = ("apiVersion", "kind", "name", "uid")
_OWNS: Final = ("controller", "blockOwnerDeletion")
# In the order of Go's type.
_FIRST_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
)
_GROUP: Final = "authorization.k8s.io"
_RESOURCE: Final = Path("spec").child("resourceAttributes")
_NON_RESOURCE: Final = Path("spec").child("nonResourceAttributes")


def access_reviews(authorizer: RuleAuthorizer, version: str = NEWEST) -> Mapping[GroupResource, Virtual]:
    """`version` is the server's, in whose words they refuse."""
    return {
        GroupResource(_GROUP, "selfsubjectaccessreviews"): SelfAccessReview(authorizer, version),
        GroupResource(_GROUP, "subjectaccessreviews"): AccessReview(authorizer, version),
        GroupResource(_GROUP, "localsubjectaccessreviews"): LocalAccessReview(authorizer, version),
        GroupResource(_GROUP, "selfsubjectrulesreviews"): SelfRulesReview(authorizer),
    }


class AccessReview(Struct, frozen=True):
    """SubjectAccessReview: may this user?"""

    authorizer: Authorizer
    version: str = NEWEST

    async def create(self, request: Request, obj: Object) -> Object:
        size = len(request.content)
        await computed(partial(_refuse_spec, obj, self.version, of_a_user=True), size)
        return await _answered(self.authorizer, obj, _user(obj), size)


class LocalAccessReview(Struct, frozen=True):
    """LocalSubjectAccessReview: may this user, in this namespace?"""

    authorizer: Authorizer
    version: str = NEWEST

    async def create(self, request: Request, obj: Object) -> Object:
        size = len(request.content)
        await computed(partial(self._refuse_spec, obj), size)
        return await _answered(self.authorizer, obj, _user(obj), size)

    def _refuse_spec(self, obj: Object) -> None:
        spec, namespace = obj.get("spec") or {}, metadata(obj).get("namespace", "")
        errors = _spec_errors(obj, of_a_user=True)
        errors += _metadata_errors(obj, "must be empty except for namespace", "namespace")
        resource = spec.get("resourceAttributes")
        if resource is not None and resource.get("namespace", "") != namespace:
            wrong = resource.get("namespace", "")
            errors.append(field.invalid(_RESOURCE.child("namespace"), wrong, "must match metadata.namespace"))
        if (other := spec.get("nonResourceAttributes")) is not None:
            errors.append(
                field.invalid(
                    _NON_RESOURCE, internal_form(other, "NonResourceAttributes"), "disallowed on this kind of request"
                )
            )
        _refuse(errors, self.version)


class SelfAccessReview(Struct, frozen=True):
    """SelfSubjectAccessReview: may I?"""

    authorizer: Authorizer
    version: str = NEWEST

    async def create(self, request: Request, obj: Object) -> Object:
        size = len(request.content)
        await computed(partial(_refuse_spec, obj, self.version, of_a_user=False), size)
        return await _answered(self.authorizer, obj, request.user, size)


class SelfRulesReview(Struct, frozen=True):
    """SelfSubjectRulesReview: what may I do here?"""

    rules: RuleResolver

    async def create(self, request: Request, obj: Object) -> Object:
        namespace = (obj.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise new_bad_request("no namespace on request")
        # Upstream answers with an object of its own, which has nothing but the answer.
        answer: Object = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": {}, "spec": {}}
        resource_rules, other_rules, incomplete, error = await self.rules.rules_for(request.user, namespace)
        status: Object = {"resourceRules": resource_rules, "nonResourceRules": other_rules, "incomplete": incomplete}
        if error:
            status["evaluationError"] = error
        return {**answer, "status": status}


# ------------------------------------------------------------------- validation


def _refuse_spec(obj: Object, version: str, *, of_a_user: bool) -> None:
    _refuse([*_spec_errors(obj, of_a_user=of_a_user), *_metadata_errors(obj, "must be empty")], version)


def _refuse(errors: ErrorList, version: str) -> None:
    if errors:
        # Upstream names the group and forgets the kind.
        raise new_invalid(GroupKind(_GROUP, ""), "", reworded_errors(errors, version))


def _spec_errors(obj: Object, *, of_a_user: bool) -> ErrorList:
    spec = obj.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: ErrorList = []
    if (resource is None) == (other is None):
        shown = None if other is None else internal_form(other, "NonResourceAttributes")
        errors.append(field.invalid("spec", shown, ONE_OF_ATTRIBUTES))
    if of_a_user and not spec.get("user") and not spec.get("groups"):
        errors.append(
            field.invalid("spec.user", spec.get("user", ""), "at least one of user or group must be specified")
        )
    for name in ("fieldSelector", "labelSelector"):
        if resource is not None and resource.get(name) is not None:
            errors += _selector_errors(resource[name], _RESOURCE.child(name), labels=name == "labelSelector")
    return errors


def _selector_errors(selector: Object, path: Path, *, labels: bool) -> ErrorList:
    raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or ()
    errors: ErrorList = []
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        errors.append(field.invalid(path.child("rawSelector"), raw, detail))
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(field.required(path.child("requirements"), detail))
    for i, requirement in enumerate(requirements):
        errors += _requirement_errors(requirement, path.child("requirements").index(i), labels=labels)
    return errors


def _requirement_errors(requirement: Object, path: Path, *, labels: bool) -> ErrorList:
    """Operators of newer clients are let through; what isn't understood is left out of the question."""
    key, operator, values = requirement.get("key", ""), requirement.get("operator", ""), requirement.get("values") or ()
    errors: ErrorList = []
    if not labels and not key:
        errors.append(field.required(path.child("key"), "must be specified"))
    if operator in ("In", "NotIn") and not values:
        errors.append(field.required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(field.forbidden(path.child("values"), detail))
    if labels:
        errors += [field.invalid(path.child("key"), key, problem) for problem in names.is_qualified_name(key)]
        for i, value in enumerate(values):
            at = path.child("values").index(i)
            errors += [field.invalid(at, value, problem) for problem in names.is_valid_label_value(value)]
    return errors


def _metadata_errors(obj: Object, detail: str, *allowed: str) -> ErrorList:
    fields = {name: value for name, value in metadata(obj).items() if value}
    if not any(name not in (*allowed, "managedFields") for name in fields):
        return []
    shown: Object = {name: fields.pop(name) for name in _FIRST_METADATA if name in fields}
    shown |= fields
    if owners := shown.get("ownerReferences"):
        shown["ownerReferences"] = [
            {**{name: owner.get(name, "") for name in _OWNER}, **{name: owner[name] for name in _OWNS if name in owner}}
            for owner in owners
        ]
    for name in _MAPS & shown.keys():
        shown[name] = dict(sorted(shown[name].items()))  # as Go prints a map
    return [field.invalid("metadata", shown, detail)]


# ----------------------------------------------------------------- the question


async def _answered(authorizer: Authorizer, obj: Object, user: UserInfo, size: int) -> Object:
    attributes, errors = _attributes(obj.get("spec") or {}, user), list[str]()
    if attributes.selectors is not None:
        await computed(attributes.selectors.read, size)
    try:
        decision, reason = await authorizer.authorize(attributes)
    except EvaluationError as error:
        decision, reason = error.decision, error.reason
        errors.append(str(error))
    status: Object = {"allowed": decision is Decision.ALLOW}
    if decision is Decision.DENY:
        status["denied"] = True
    if reason:
        status["reason"] = reason
    if attributes.selectors is not None:
        errors += _ignored("fieldSelector", attributes.selectors.fields)
        errors += _ignored("labelSelector", attributes.selectors.labels)
    if errors:
        status["evaluationError"] = "; ".join(errors)
    return {**obj, "status": status}


def _ignored(name: str, selector: Parsed) -> list[str]:
    if not selector.error:
        return []
    partially = "partially " if selector.requirements else ""
    return [f"spec.resourceAttributes.{name} {partially}ignored due to parse error"]


def _user(obj: Object) -> UserInfo:
    spec = obj.get("spec") or {}
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _attributes(spec: Object, user: UserInfo) -> Attributes:
    wanted: dict[str, Any] | None = spec.get("resourceAttributes")
    if wanted is None:
        other = spec["nonResourceAttributes"]
        return Attributes(user=user, verb=other.get("verb", ""), path=other.get("path", ""))
    field_selector, label_selector = wanted.get("fieldSelector") or "", wanted.get("labelSelector") or ""
    return Attributes(
        user=user,
        verb=wanted.get("verb", ""),
        resource_request=True,
        api_group=wanted.get("group", ""),
        api_version=wanted.get("version") or "*",
        resource=wanted.get("resource", ""),
        subresource=wanted.get("subresource", ""),
        namespace=wanted.get("namespace", ""),
        name=wanted.get("name", ""),
        selectors=Selectors(field_selector, label_selector) if field_selector or label_selector else None,
    )
