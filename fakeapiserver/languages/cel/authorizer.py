"""The variable `authorizer` of expressions: values that build a question, and the decision.

Upstream: k8s.io/apiserver/pkg/cel/library/authz.go

An evaluation waits for nothing. A question that has no decision yet ends it with Unanswered; the caller gets the decision,
adds it and evaluates again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

from fakeapiserver.apimachinery import names
from fakeapiserver.languages.cel.errors import CelError, no_such_overload
from fakeapiserver.languages.cel.types import Type, struct

AUTHORIZER: Final = struct("kubernetes.authorization.Authorizer")
RESOURCE_CHECK: Final = struct("kubernetes.authorization.ResourceCheck")


class _Receiver:
    """A value that has functions and nothing else."""

    __slots__ = ()

    def __eq__(self, _: object) -> bool:
        raise no_such_overload()

    __hash__ = None  # type: ignore[assignment]


class Question(NamedTuple):
    """A question to the authorizer, about a resource, or, if `path` isn't empty, about a path.

    `service_account` is (namespace, name) of the subject; None for the request's user.
    """

    verb: str
    service_account: tuple[str, str] | None = None
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Unanswered(Exception):
    """The evaluation can't go on before this is decided."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


@dataclass(frozen=True, slots=True, eq=False)
class Decision(_Receiver):
    cel_type: ClassVar[Type] = struct("kubernetes.authorization.Decision")
    allowed: bool
    reason: str = ""
    error: str = ""


Decisions = Mapping[Question, Decision]


@dataclass(frozen=True, slots=True, eq=False)
class Authorizer(_Receiver):
    cel_type: ClassVar[Type] = AUTHORIZER
    decisions: Decisions
    service_account: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PathCheck(_Receiver):
    cel_type: ClassVar[Type] = struct("kubernetes.authorization.PathCheck")
    authorizer: Authorizer
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class GroupCheck(_Receiver):
    cel_type: ClassVar[Type] = struct("kubernetes.authorization.GroupCheck")
    authorizer: Authorizer
    group: str


@dataclass(frozen=True, slots=True, eq=False)
class ResourceCheck(_Receiver):
    """`question` lacks only its verb."""

    cel_type: ClassVar[Type] = RESOURCE_CHECK
    authorizer: Authorizer
    question: Question


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.name_is_dns_subdomain(name, False):
        raise CelError("Invalid service account name")
    if names.name_is_dns_label(namespace, False):
        raise CelError("Invalid service account namespace")
    return replace(authorizer, service_account=(namespace, name))


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(authorizer, path)


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    question = Question("", check.authorizer.service_account, group=check.group, resource=resource)
    return ResourceCheck(check.authorizer, question)


def _with(name: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def complete(check: ResourceCheck, value: str) -> ResourceCheck:
        more: dict[str, Any] = {name: value}
        return replace(check, question=check.question._replace(**more))

    return complete


def _decided(authorizer: Authorizer, question: Question) -> Decision:
    decision = authorizer.decisions.get(question)
    if decision is None:
        raise Unanswered(question)
    return decision


def _check_path(check: PathCheck, verb: str) -> Decision:
    return _decided(check.authorizer, Question(verb, check.authorizer.service_account, path=check.path))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return _decided(check.authorizer, check.question._replace(verb=verb))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "authorizer_path": _path,
    "authorizer_group": GroupCheck,
    "authorizer_serviceaccount": _service_account,
    "groupcheck_resource": _resource,
    "resourcecheck_subresource": _with("subresource"),
    "resourcecheck_namespace": _with("namespace"),
    "resourcecheck_name": _with("name"),
    "authorizer_fieldselector": _with("field_selector"),
    "authorizer_labelselector": _with("label_selector"),
    "pathcheck_check": _check_path,
    "resourcecheck_check": _check_resource,
    "decision_allowed": lambda decision: decision.allowed,
    "decision_errored": lambda decision: bool(decision.error),
    "decision_error": lambda decision: decision.error,
    "decision_reason": lambda decision: decision.reason,
}
