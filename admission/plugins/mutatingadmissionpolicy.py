"""Policies in CEL that change what is written.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/{plugin,dispatcher,reinvocationcontext}.go.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from fakeapiserver.admission.handler import forbidden
from fakeapiserver.admission.interfaces import Attributes, Reinvocation
from fakeapiserver.admission.policy.source import Binding, ConfigurationError, Hook, PolicyPlugin
from fakeapiserver.admission.webhook.matching import Matched, in_version
from fakeapiserver.apimachinery.errors import StatusError, new_internal_error
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json

if TYPE_CHECKING:
    from fakeapiserver.admission.policy.mutator import Mutator
    from fakeapiserver.apimachinery.cel.authorizer import Decision, Question


@dataclass(frozen=True)
class MutatingHook(Hook):
    @cached_property
    def mutator(self) -> "Mutator":
        from fakeapiserver.admission.policy.mutator import Mutator

        return Mutator(self.spec)


class Invocation(NamedTuple):
    hook: MutatingHook
    binding: Binding
    matched: Matched
    param: Object | None

    @property
    def key(self) -> str:
        meta = metadata(self.param or {})
        return "/".join((self.hook.name, self.binding.name, meta.get("namespace", ""), meta.get("name", "")))


class Denial(NamedTuple):
    message: str
    reason: str = ""


class MutatingAdmissionPolicy(PolicyPlugin[MutatingHook]):
    operations = frozenset({"CREATE", "UPDATE", "CONNECT"})
    policies = "mutatingadmissionpolicies.admissionregistration.k8s.io"
    policy_bindings = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"
    hook = MutatingHook

    async def admit(self, attributes: Attributes) -> None:
        hooks = self.hooks(attributes)
        if not hooks:
            return
        denials: list[Denial] = []
        invocations = [found for hook in hooks for found in await self._invocations(hook, attributes, denials)]
        if invocations:
            await self._invoke_all(invocations, attributes, denials)
        if denials:
            raise _refusal(attributes, denials)

    async def _invocations(self, hook: MutatingHook, attributes: Attributes, denials: list[Denial]) -> list[Invocation]:
        found: list[Invocation] = []
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
                    found += [Invocation(hook, binding, matched, param) for param in params]
            except ConfigurationError as error:
                _deny(hook, binding, f"failed to configure binding: {error}", denials)
        return found

    async def _invoke_all(self, invocations: list[Invocation], attributes: Attributes, denials: list[Denial]) -> None:
        whole = attributes.reinvocation = attributes.reinvocation or Reinvocation()
        state = whole.policies = whole.policies or Reinvocation()
        if whole.running and state.output != json.encode(attributes.object):
            state.require()  # other plugins have changed it meanwhile
        namespace = self.namespace(attributes)
        decisions: dict[Question, Decision] = {}
        for invocation in invocations:
            if await self._invoke(invocation, attributes, namespace, decisions, denials):
                state.require()
                whole.needed = True
        state.output = json.encode(attributes.object)

    async def _invoke(
        self,
        invocation: Invocation,
        attributes: Attributes,
        namespace: Object | None,
        decisions: "dict[Question, Decision]",
        denials: list[Denial],
    ) -> bool:
        """Whether it has changed the object."""
        from fakeapiserver.admission.policy.expressions import ConditionError, Evaluation, namespace_object
        from fakeapiserver.admission.policy.mutator import MutationError

        hook, binding, (_, kind), param = invocation
        whole = attributes.reinvocation
        assert whole is not None
        assert whole.policies is not None
        subject = await self.subject(invocation.matched, attributes)
        evaluation = Evaluation.of(attributes, subject, self.initializer.authorizer, decisions).with_names(params=param)
        try:
            if not await hook.mutator.is_wanted(evaluation):
                return False
        except ConditionError as error:
            _deny(hook, binding, str(error), denials, "Invalid")
            return False
        if whole.running and invocation.key not in whole.policies.again:
            return False
        before = current = subject.object
        shown = None if namespace is None else namespace_object(namespace)
        schema = self.initializer.versions.typed(kind)
        for mutation in hook.mutator.mutations:
            if current is None or schema is None:
                break
            try:
                seen = evaluation.with_names(object=current, namespaceObject=shown)
                current = await hook.mutator.patched(mutation, seen, schema)
                unknown = self.initializer.versions.settle(current, kind)
            except MutationError as error:
                _deny(hook, binding, str(error), denials, "Invalid")
            except ValueError as error:
                raise new_internal_error(str(error)) from None
            else:
                if unknown:
                    raise new_internal_error(f"strict decoding error: {', '.join(unknown)}")
        if changed := current != before:
            attributes.object = await in_version(current, attributes.kind, self.initializer.versions)
        if hook.spec.get("reinvocationPolicy") == "IfNeeded":
            if changed:
                whole.policies.require()
            whole.policies.called.add(invocation.key)
        return changed


def _deny(hook: Hook, binding: Binding | None, message: str, denials: list[Denial], reason: str = "") -> None:
    if hook.ignores_failures:
        return
    whose = f"policy {go_quote(hook.name)}"
    if binding is not None:
        whose = f"policy '{hook.name}' with binding '{binding.name}'"
    denials.append(Denial(f"{whose} denied request: {message}", reason))


def _refusal(attributes: Attributes, denials: list[Denial]) -> StatusError:
    """Of the first one's reason, yet always 403."""
    status: Object = {**forbidden(attributes, "admission request denied by policy").status}
    status["message"] = denials[0].message
    status["reason"] = denials[0].reason or status["reason"]
    details = status.get("details") or {}
    causes = [{"message": denial.message} for denial in denials]
    status["details"] = {**details, "causes": [*(details.get("causes") or ()), *causes]}
    return StatusError(status)
