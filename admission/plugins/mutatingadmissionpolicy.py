"""Policies in CEL that change what is written.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/{plugin,dispatcher,reinvocationcontext}.go.
"""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.admission.handler import forbidden
from fakeapiserver.admission.interfaces import Attributes, Reinvocation, Versions
from fakeapiserver.admission.policy import expressions
from fakeapiserver.admission.policy import mutator as mutator_module
from fakeapiserver.admission.policy.source import Binding, ConfigurationError, Hook, PolicyPlugin
from fakeapiserver.admission.webhook.matching import Matched, in_version
from fakeapiserver.admission.webhook.review import Subject
from fakeapiserver.apimachinery.errors import StatusError, new_internal_error
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json

if TYPE_CHECKING:
    from fakeapiserver.admission.policy.expressions import Evaluation
    from fakeapiserver.admission.policy.mutator import Mutator
    from fakeapiserver.languages.cel.authorizer import Decision, Question


class MutatingHook(Hook, frozen=True):
    @cached_property
    def mutator(self) -> "Mutator":
        return mutator_module.Mutator(self.spec, self.version)


class Invocation(NamedTuple):
    hook: MutatingHook
    binding: Binding
    matched: Matched
    param: Object | None

    @property
    def key(self) -> str:
        meta = metadata(self.param or {})
        return "/".join((self.hook.name, self.binding.name, meta.get("namespace", ""), meta.get("name", "")))


class View(Struct):
    """The write in the version that some policies see, with their changes."""

    subject: Subject
    is_dirty: bool = False


class Denial(NamedTuple):
    message: str
    reason: str = ""


class MutatingAdmissionPolicy(PolicyPlugin[MutatingHook]):
    feature_gate = "MutatingAdmissionPolicy"
    operations = frozenset({"CREATE", "UPDATE", "CONNECT"})
    policies = "mutatingadmissionpolicies.admissionregistration.k8s.io"
    policy_bindings = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"
    hook = MutatingHook
    types_params = False

    async def admit(self, attributes: Attributes) -> None:
        hooks = self.hooks(attributes)
        if not hooks:
            return
        denials: list[Denial] = []
        invocations = [
            invocation for hook in hooks for invocation in await self._invocations(hook, attributes, denials)
        ]
        if invocations:
            await self._invoke_all(invocations, attributes, denials)
        if denials:
            raise _refusal(attributes, denials)

    async def _invocations(self, hook: MutatingHook, attributes: Attributes, denials: list[Denial]) -> list[Invocation]:
        invocations: list[Invocation] = []
        try:
            if (matched := self.match(hook, attributes)) is None:
                return []
        except ConfigurationError as error:
            _deny(hook, None, f"failed to configure policy: {error}", denials)
            return []
        for binding in hook.bindings:
            try:
                if self.binds(binding, attributes):
                    params = await self.params(hook, binding, attributes)
                    invocations += [Invocation(hook, binding, matched, param) for param in params]
            except ConfigurationError as error:
                _deny(hook, binding, f"failed to configure binding: {error}", denials)
        return invocations

    async def _invoke_all(self, invocations: list[Invocation], attributes: Attributes, denials: list[Denial]) -> None:
        """Policies that see the write in different versions don't see each other's changes, and the last one's count."""
        whole = attributes.reinvocation = attributes.reinvocation or Reinvocation()
        state = whole.policies = whole.policies or Reinvocation()
        if whole.running and state.output != json.encode(attributes.object):
            state.require()  # other plugins have changed it meanwhile
        namespace = self.namespace(attributes)
        decisions: dict[Question, Decision] = {}
        views: dict[Matched, View] = {}
        last: View | None = None
        for invocation in invocations:
            try:
                view = views.get(invocation.matched) or View(await self.subject(invocation.matched, attributes))
            except ConfigurationError as error:
                _deny(invocation.hook, None, f"failed to configure policy: {error}", denials)
                continue
            views[invocation.matched] = view
            if await self._invoke(invocation, view, attributes, namespace, decisions, denials):
                last = view
        if last is not None and last.is_dirty:
            state.require()
            whole.needed = True
            attributes.object = await in_version(last.subject.object, attributes.kind, self.initializer.versions)
        state.output = json.encode(attributes.object)

    async def _invoke(
        self,
        invocation: Invocation,
        view: View,
        attributes: Attributes,
        namespace: Object | None,
        decisions: "dict[Question, Decision]",
        denials: list[Denial],
    ) -> bool:
        """Reports whether its conditions hold and it has its turn."""
        hook, binding, _, param = invocation
        whole = attributes.reinvocation
        assert whole is not None
        assert whole.policies is not None
        before = view.subject.object
        evaluation = expressions.Evaluation.of(attributes, view.subject, self.initializer.authorizer, decisions)
        evaluation = evaluation.with_names(params=param)
        try:
            if not await hook.mutator.is_wanted(evaluation):
                return False
        except expressions.ConditionError as error:
            _deny(hook, binding, str(error), denials, "Invalid")
            return False
        if whole.running and invocation.key not in whole.policies.again:
            return False
        shown = None if namespace is None else expressions.namespace_object(namespace)
        await self._mutate(invocation, view, attributes, evaluation.with_names(namespaceObject=shown), denials)
        if view.subject.object != before:
            whole.policies.require()
            whole.needed = True
        if hook.spec.get("reinvocationPolicy") == "IfNeeded":
            whole.policies.called.add(invocation.key)
        return True

    async def _mutate(
        self,
        invocation: Invocation,
        view: View,
        attributes: Attributes,
        evaluation: "Evaluation",
        denials: list[Denial],
    ) -> None:
        """Applies the mutations in order; those that fail leave the object unchanged."""
        versions, kind = self.initializer.versions, view.subject.kind
        if view.subject.object is None:
            return
        schema = versions.typed(kind)
        for mutation in invocation.hook.mutator.mutations:
            try:
                seen = evaluation.with_names(object=view.subject.object)
                current = await invocation.hook.mutator.patched(mutation, seen, schema)
                if kind != attributes.kind and not versions.is_custom(kind):
                    raise mutator_module.MutationError(_unknown_conversion(kind, attributes.kind))
                _take(current, kind, versions, merged=mutation.merges)
            except mutator_module.MutationError as error:
                _deny(invocation.hook, invocation.binding, str(error), denials, "Invalid")
            else:
                view.subject, view.is_dirty = replace(view.subject, object=current), True


def _take(obj: Object, kind: GroupVersionKind, versions: Versions, *, merged: bool) -> None:
    """Brings what a mutation has made into the kind's form, in place. MutationError, and StatusError for a JSON patch's."""
    for key, wanted in (("kind", kind.kind), ("apiVersion", str(kind.group_version))):
        if obj.setdefault(key, wanted) != wanted and not versions.is_custom(kind):
            place = f'for version "{obj["apiVersion"]}" in scheme "pkg/runtime/scheme.go:111"'
            raise new_internal_error(f'no kind "{obj["kind"]}" is registered {place}')
    try:
        if merged:
            versions.restore(obj, kind)
        elif unknown := versions.settle(obj, kind):
            raise new_internal_error(f"strict decoding error: {', '.join(unknown)}")
    except ValueError as error:
        if not merged:
            raise new_internal_error(str(error)) from None
        shown = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        raise mutator_module.MutationError(f"unable to convert unstructured object to {shown}: {error}") from None


def _unknown_conversion(kind: GroupVersionKind, wanted: GroupVersionKind) -> str:
    """Upstream brings what a mutation has made into the request's version as if it were of the stored one."""
    if kind.group != wanted.group:
        shown = go_quote(str(wanted.group_version))
        return f'{kind.version}.{kind.kind} is not suitable for converting to {shown} in scheme "pkg/runtime/scheme.go:111"'
    return f"converting ({kind.version}.{kind.kind}) to ({wanted.version}.{kind.kind}): unknown conversion"


def _deny(hook: Hook, binding: Binding | None, message: str, denials: list[Denial], reason: str = "") -> None:
    if hook.ignores_failures:
        return
    whose = f"policy {go_quote(hook.name)}"
    if binding is not None:
        whose = f"policy '{hook.name}' with binding '{binding.name}'"
    denials.append(Denial(f"{whose} denied request: {message}", reason))


def _refusal(attributes: Attributes, denials: list[Denial]) -> StatusError:
    """Returns the refusal with the reason of the first denial, yet always with 403."""
    status: Object = {**forbidden(attributes, "admission request denied by policy").status}
    status["message"] = denials[0].message
    status["reason"] = denials[0].reason or status["reason"]
    details = status.get("details") or {}
    causes = [{"message": denial.message} for denial in denials]
    status["details"] = {**details, "causes": [*(details.get("causes") or ()), *causes]}
    return StatusError(status)
