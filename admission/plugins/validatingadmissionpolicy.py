"""Policies in CEL that may refuse a write.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/{plugin,dispatcher,validator}.go.
"""

from collections.abc import Iterator
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from fakeapiserver.admission.handler import forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.measures import POLICY_CHECKS, POLICY_SECONDS
from fakeapiserver.admission.policy import expressions
from fakeapiserver.admission.policy import validator as validator_module
from fakeapiserver.admission.policy.source import Binding, ConfigurationError, Hook, PolicyPlugin
from fakeapiserver.admission.webhook.matching import Matched
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json

if TYPE_CHECKING:
    from fakeapiserver.admission.policy.validator import Failure, Findings, Validator
    from fakeapiserver.languages.cel.authorizer import Decision, Question

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


class ValidatingHook(Hook, frozen=True):
    @cached_property
    def validator(self) -> "Validator":
        return validator_module.Validator(self.spec, self.version)


class Denial(NamedTuple):
    message: str
    reason: str = "Invalid"


# Upstream: maxAuditAnnotationValueLength.
_ERROR_TYPES: Final = (
    ("compilation", "compile_error"),
    ("validation failed due to running out of cost budget", "out_of_budget"),
)
_MOST_ANNOTATION: Final = 10 * 1024
_FAILURE: Final = "validation.policy.admission.k8s.io/validation_failure"


class ValidatingAdmissionPolicy(PolicyPlugin[ValidatingHook]):
    operations = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
    policies = "validatingadmissionpolicies.admissionregistration.k8s.io"
    policy_bindings = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
    hook = ValidatingHook

    async def validate(self, attributes: Attributes) -> None:
        hooks = self.hooks(attributes)
        if not hooks:
            return
        decisions: dict[Question, Decision] = {}
        denials = [denial for hook in hooks for denial in await self._policy(hook, attributes, decisions)]
        if denials:
            raise _refusal(attributes, denials[0])

    async def _policy(
        self, hook: ValidatingHook, attributes: Attributes, decisions: "dict[Question, Decision]"
    ) -> list[Denial]:
        try:
            matched = self.match(hook, attributes)
        except ConfigurationError as error:
            return list(_misconfigured(hook, None, error))
        if matched is None:
            return []
        denials, told = list[Denial](), dict[str, dict[str, None]]()
        for binding in hook.bindings:
            try:
                if self.binds(binding, attributes):
                    denials += await self._binding(hook, binding, matched, attributes, decisions, told)
            except ConfigurationError as error:
                denials += _misconfigured(hook, binding, error)
        for key, values in told.items():
            attributes.annotate(f"{hook.name}/{key}", ", ".join(values))
        return denials

    async def _binding(
        self,
        hook: ValidatingHook,
        binding: Binding,
        matched: Matched,
        attributes: Attributes,
        decisions: "dict[Question, Decision]",
        told: dict[str, dict[str, None]],
    ) -> list[Denial]:
        """`told` gets each audit annotation's values, in order. ConfigurationError."""
        params = await self.params(hook, binding, attributes)
        if not params:
            return []
        subject = await self.subject(matched, attributes)
        namespace, denials = self.namespace(attributes), list[Denial]()
        evaluation = expressions.Evaluation.of(attributes, subject, self.initializer.authorizer, decisions)
        for param in params:
            start = perf_counter()
            findings = await hook.validator.validate(evaluation, param, namespace)
            self._count(hook, binding, findings, perf_counter() - start)
            for key, value in findings.annotations.items():
                told.setdefault(key, {})[value[:_MOST_ANNOTATION]] = None
            for failure in findings.failures:
                denials += _acted(hook, binding, failure, attributes)
            denials += [Denial(_denied(hook, binding, error)) for error in findings.errors]
        return denials

    def _count(self, hook: Hook, binding: Binding, findings: "Findings", seconds: float) -> None:
        """Upstream counts what has failed only, once for each action."""
        actions = [action.lower() for action in binding.spec.get("validationActions") or ()]
        failed = [(action, failure.message) for failure in findings.failures for action in actions]
        failed += [("deny", error) for error in findings.errors] + [("allow", error) for error in findings.ignored]
        for action, message in failed:
            labels = (action, _error_type(message), hook.name, binding.name)
            self.initializer.instruments.count(POLICY_CHECKS, *labels)
            self.initializer.instruments.observe(POLICY_SECONDS, seconds, *labels)


def _error_type(message: str) -> str:
    """Upstream takes a failed validation for an invalid one."""
    return next((kind for start, kind in _ERROR_TYPES if message.startswith(start)), "invalid_error")


def _acted(hook: Hook, binding: Binding, failure: "Failure", attributes: Attributes) -> Iterator[Denial]:
    """Yields the denials of a binding after a failed validation."""
    for action in binding.spec.get("validationActions") or ():
        if action == "Deny":
            yield Denial(_denied(hook, binding, failure.message), failure.reason)
        elif action == "Warn":
            whose = f"ValidatingAdmissionPolicy '{hook.name}' with binding '{binding.name}'"
            attributes.warnings.append(f"Validation failed for {whose}: {failure.message}")
        elif action == "Audit" and attributes.annotations is not None:
            attributes.annotate(_FAILURE, _told(hook, binding, failure))


def _told(hook: Hook, binding: Binding, failure: "Failure") -> str:
    value = {
        "message": failure.message,
        "policy": hook.name,
        "binding": binding.name,
        "expressionIndex": failure.position,
        "validationActions": binding.spec["validationActions"],
    }
    return json.encode([value]).decode()


def _misconfigured(hook: Hook, binding: Binding | None, error: ConfigurationError) -> Iterator[Denial]:
    if not hook.ignores_failures:
        what = "policy" if binding is None else "binding"
        yield Denial(_denied(hook, binding, f"failed to configure {what}: {error}"))


def _denied(hook: Hook, binding: Binding | None, message: str) -> str:
    whose = f"ValidatingAdmissionPolicy '{hook.name}'"
    if binding is not None:
        whose += f" with binding '{binding.name}'"
    return f"{whose} denied request: {message}"


def _refusal(attributes: Attributes, denial: Denial) -> StatusError:
    status: Object = {**forbidden(attributes, denial.message).status}
    status["reason"], status["code"] = denial.reason, _CODES.get(denial.reason, 422)
    details = status.get("details") or {}
    status["details"] = {**details, "causes": [*(details.get("causes") or ()), {"message": denial.message}]}
    return StatusError(status)
