"""Evaluating the expressions of webhooks and policies against a write.

Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/{activation,condition,composition}.go,
plugin/webhook/matchconditions/matcher.go.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self

from msgspec import Struct, field

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.webhook.review import Subject, request_of
from fakeapiserver.apimachinery.cel.admission import Environment
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import Attributes as AuthorizerAttributes
from fakeapiserver.auth.interfaces import Authorizer, EvaluationError, UserInfo
from fakeapiserver.auth.interfaces import Decision as AuthorizerDecision
from fakeapiserver.auth.selectors import Selectors
from fakeapiserver.effort import computed
from fakeapiserver.languages.cel import authorizer as cel_authorizer
from fakeapiserver.languages.cel.authorizer import Decision, Question, Unanswered
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.program import Program
from fakeapiserver.languages.cel.types import BOOL, Type
from fakeapiserver.languages.cel.values import Lazy

BUDGET: Final = 10_000_000
_CONDITIONS_BUDGET: Final = 2_500_000
_NAMESPACE_META: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
)


class OutOfBudget(Exception):
    """No expression is run any more."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


class ConditionError(Exception):
    """Some conditions could not be evaluated, and none said no."""


class Expression(NamedTuple):
    """`error` says why there is no program."""

    text: str
    program: Program | None
    error: str = ""


def compiled(
    environment: Environment, text: str, *wanted: Type, has_authorizer: bool = True, makes_patches: bool = False
) -> Expression:
    try:
        program = environment.compile(text, *wanted, has_authorizer=has_authorizer, makes_patches=makes_patches)
        return Expression(text, program)
    except ValueError as error:
        return Expression(text, None, str(error))


def compiled_conditions(environment: Environment, conditions: Sequence[Object]) -> list[Expression]:
    return [compiled(environment, condition.get("expression", ""), BOOL) for condition in conditions]


def compiled_variables(environment: Environment, variables: Sequence[Object]) -> dict[str, Expression]:
    """By name. From here on the environment knows them."""
    expressions: dict[str, Expression] = {}
    for variable in variables:
        name, text = variable["name"], variable.get("expression", "")
        try:
            expressions[name] = Expression(text, environment.add_variable(name, text))
        except ValueError as error:
            expressions[name] = Expression(text, None, str(error))
    return expressions


class Outcome(NamedTuple):
    """A value or, where `error` is not empty, none."""

    value: Any
    error: str = ""


class Evaluation(Struct):
    """The evaluation of one write for one webhook or policy.

    `names` are the variables of expressions, without `variables`; `decisions` the authorizer's decisions so far,
    if expressions may use it.
    """

    names: dict[str, Any]
    user: UserInfo
    authorizer: Authorizer | None
    decisions: dict[Question, Decision] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        attributes: Attributes,
        subject: Subject,
        authorizer: Authorizer | None,
        decisions: dict[Question, Decision] | None = None,
    ) -> Self:
        """`decisions` are shared by the evaluations of one write."""
        known = {} if decisions is None else decisions
        own = cel_authorizer.Authorizer(known)
        resource = attributes.resource
        question = Question(
            "",
            group=resource.group,
            resource=resource.resource,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        names = {
            "object": subject.object,
            "oldObject": subject.old_object,
            "request": request_of(attributes, subject.resource, subject.kind),
            "authorizer": own,
            "authorizer.requestResource": cel_authorizer.ResourceCheck(own, question),
        }
        return cls(names, attributes.user, authorizer, known)

    def with_names(self, **names: Any) -> "Evaluation":
        return Evaluation({**self.names, **names}, self.user, self.authorizer, self.decisions)

    async def decide(self, question: Question) -> None:
        """Asks the authorizer."""
        self.decisions[question] = await _decision(self.authorizer, self.user, question)


class Run:
    """Some expressions evaluated one after the other, which share what their variables have come to, and a budget."""

    def __init__(self, evaluation: Evaluation, variables: Mapping[str, Expression], budget: int) -> None:
        self._evaluation = evaluation
        self._variables = variables
        self._names = {**evaluation.names, "variables": Lazy(variables, self._variable)}
        self._composition = 0
        self.budget = budget

    async def evaluate(self, expression: Expression) -> Outcome:
        """OutOfBudget."""
        if expression.program is None:
            return Outcome(None, f"compilation error: {expression.error}")
        while True:
            try:
                result = await computed(partial(expression.program.evaluate, self._names))
                break
            except Unanswered as unanswered:
                await self._evaluation.decide(unanswered.question)
        self._spend(self._composition)
        self._composition = 0
        self._spend(result.cost)
        if result.error:
            return Outcome(None, f"expression '{expression.text}' resulted in error: {result.error}")
        return Outcome(result.value)

    def _spend(self, cost: int) -> None:
        if cost > self.budget:
            raise OutOfBudget
        self.budget -= cost

    def _variable(self, name: str) -> Any:
        expression = self._variables[name]
        if expression.program is None:
            raise CelError(f'composited variable "{name}" fails to compile: {expression.error}')
        result = expression.program.evaluate(self._names)
        self._composition += result.cost
        if result.error:
            raise CelError(f'composited variable "{name}" fails to evaluate: {result.error}')
        return result.value


async def hold(
    conditions: Sequence[Expression],
    evaluation: Evaluation,
    variables: Mapping[str, Expression] | None = None,
    *,
    ignores_failures: bool,
) -> bool:
    """Reports whether all match conditions are true. Those that fail make it false where failures are ignored, else ConditionError."""
    run, errors = Run(evaluation, variables or {}, _CONDITIONS_BUDGET), list[str]()
    try:
        outcomes = [await run.evaluate(condition) for condition in conditions]
    except OutOfBudget as error:
        if ignores_failures:
            return False
        raise ConditionError(str(error)) from None
    if any(outcome.value is False for outcome in outcomes):
        return False
    for outcome in outcomes:
        if outcome.error and outcome.error not in errors:
            errors.append(outcome.error)
    if errors and not ignores_failures:
        raise ConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return not errors


def namespace_object(namespace: Object) -> Object:
    """Returns a namespace as expressions see it."""
    meta = namespace.get("metadata") or {}
    return {
        "metadata": {key: meta[key] for key in _NAMESPACE_META if key in meta},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }


async def _decision(authorizer: Authorizer | None, user: UserInfo, question: Question) -> Decision:
    if authorizer is None:
        return Decision(True)
    if question.service_account is not None:
        namespace, name = question.service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        user = UserInfo(f"system:serviceaccount:{namespace}:{name}", groups=groups)
    if question.path:
        asked = AuthorizerAttributes(user, question.verb, question.path)
    else:
        has_selectors = question.field_selector or question.label_selector
        asked = AuthorizerAttributes(
            user,
            question.verb,
            resource_request=True,
            api_group=question.group,
            api_version="*",
            resource=question.resource,
            subresource=question.subresource,
            namespace=question.namespace,
            name=question.name,
            selectors=Selectors(question.field_selector, question.label_selector) if has_selectors else None,
        )
    try:
        decision, reason = await authorizer.authorize(asked)
    except EvaluationError as error:
        return Decision(error.decision is AuthorizerDecision.ALLOW, error.reason, str(error))
    return Decision(decision is AuthorizerDecision.ALLOW, reason)
