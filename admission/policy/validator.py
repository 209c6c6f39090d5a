"""The expressions of one ValidatingAdmissionPolicy.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.admission.policy.expressions import (
    BUDGET,
    ConditionError,
    Evaluation,
    Outcome,
    OutOfBudget,
    Run,
    compiled,
    compiled_conditions,
    compiled_variables,
    hold,
    namespace_object,
)
from fakeapiserver.apimachinery.cel.admission import Environment
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.languages.cel.program import PER_CALL_LIMIT
from fakeapiserver.languages.cel.types import BOOL, NULL, STRING
from fakeapiserver.languages.cel.values import BadField

_MAX_MESSAGE: Final = 5 * 1024
# Messages and annotations have no authorizer, though those may name it.
_UNASKED: Final = {
    name: BadField(f"no such attribute(s): {name}") for name in ("authorizer", "authorizer.requestResource")
}


class Failure(NamedTuple):
    """`position` is that of the validation."""

    message: str
    reason: str = "Invalid"
    position: int = 0


class Findings(Struct):
    """`failures` are acted on as the binding says, `errors` always deny; `annotations` are for the audit log, `ignored` errors
    for metrics only."""

    failures: list[Failure] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


class Validator:
    def __init__(self, spec: Mapping[str, Any], version: str = NEWEST) -> None:
        """`spec` is the policy's, `version` Kubernetes's. What doesn't compile fails when it is evaluated."""
        environment = Environment(spec.get("paramKind") is not None, composes=True, version=version)
        self._ignores_failures = spec.get("failurePolicy") == "Ignore"
        self._variables = compiled_variables(environment, spec.get("variables") or ())
        self._conditions = compiled_conditions(environment, spec.get("matchConditions") or ())
        self._validations: list[Object] = spec.get("validations") or []
        self._expressions = [compiled(environment, v.get("expression", ""), BOOL) for v in self._validations]
        self._messages = [
            compiled(environment, text, STRING, has_authorizer=False) if (text := v.get("messageExpression")) else None
            for v in self._validations
        ]
        # Their highest cost; otherwise the remaining budget is enough for messages that are not shown.
        self._dearest_messages = PER_CALL_LIMIT * (len([m for m in self._messages if m]) + len(self._variables))
        self._annotations = [
            (a.get("key", ""), compiled(environment, a.get("valueExpression", ""), STRING, NULL))
            for a in spec.get("auditAnnotations") or ()
        ]

    async def validate(self, evaluation: Evaluation, params: Object | None, namespace: Object | None) -> Findings:
        seen = evaluation.with_names(params=params)
        findings = Findings()
        try:
            if self._conditions and not await hold(
                self._conditions, seen, self._variables, ignores_failures=self._ignores_failures
            ):
                return findings
            shown = None if namespace is None else namespace_object(namespace)
            seen = seen.with_names(namespaceObject=shown)
            await self._validate(seen, findings)
            seen = seen.with_names(namespaceObject=namespace)
            await self._annotate(seen, findings)
        except (ConditionError, OutOfBudget) as error:
            ignored = self._ignores_failures
            findings = Findings(ignored=[str(error)]) if ignored else Findings([Failure(str(error))])
        return findings

    async def _validate(self, evaluation: Evaluation, findings: Findings) -> None:
        """OutOfBudget."""
        run = Run(evaluation, self._variables, BUDGET)
        outcomes = [await run.evaluate(expression) for expression in self._expressions]
        messages, problem = list[Outcome | None](), ""
        if run.budget < self._dearest_messages or any(outcome.value is not True for outcome in outcomes):
            messages, problem = await self._evaluated_messages(evaluation, run.budget)
        for i, outcome in enumerate(outcomes):
            error = outcome.error or (f"failed messageExpression: {problem}" if problem else "")
            if error and self._ignores_failures:
                findings.ignored.append(error)
            elif error:
                findings.failures.append(Failure(error, position=i))
            elif outcome.value is not True:
                validation = self._validations[i]
                text = _message(validation, messages[i])
                findings.failures.append(Failure(text, validation.get("reason") or "Invalid", i))

    async def _evaluated_messages(self, evaluation: Evaluation, budget: int) -> tuple[list[Outcome | None], str]:
        """All of them, whether or not they are shown, and why they can't be."""
        run = Run(evaluation.with_names(**_UNASKED), self._variables, budget)
        try:
            return [None if text is None else await run.evaluate(text) for text in self._messages], ""
        except OutOfBudget as error:
            return [], str(error)

    async def _annotate(self, evaluation: Evaluation, findings: Findings) -> None:
        """OutOfBudget."""
        run = Run(evaluation.with_names(**_UNASKED), self._variables, BUDGET)
        for key, expression in self._annotations:
            value, error = await run.evaluate(expression)
            if error:
                findings.errors += [] if self._ignores_failures else [error]
            elif isinstance(value, str) and value.strip():
                findings.annotations[key] = value.strip()


def _message(validation: Object, evaluated: Outcome | None) -> str:
    """Returns the message of a failed validation:

    its messageExpression's value if suitable, its message, or the expression.
    """
    if evaluated is not None and not evaluated.error and isinstance(evaluated.value, str):
        text = evaluated.value.strip()
        if text and len(text.encode()) <= _MAX_MESSAGE and "\n" not in text:
            return text
    return validation.get("message", "").strip() or f"failed expression: {validation.get('expression', '').strip()}"
