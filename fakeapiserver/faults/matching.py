"""Reports whether a fault is for a request."""

from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.cel import typed
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints.request import TEST_CONTROL, Request, is_bundled
from fakeapiserver.faults.readers import READS, WRITES
from fakeapiserver.faults.rule import LEASE_VERBS, Fault
from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.program import Program
from fakeapiserver.languages.cel.values import BadField

# Paths that no fault is for: a test must be able to remove it.
_APPLY: Final = "application/apply-patch"
_VERBS: Final = (*READS, *WRITES)


class Subject(Struct):
    """The objects of a request: `new` is the body of a write, `old` the stored object. None if it doesn't exist."""

    new: Object | None
    old: Object | None

    @property
    def shown(self) -> Object | None:
        return self.new if self.new is not None else self.old


Read = Callable[[], Awaitable[Subject]]


class Matcher:
    """Matches requests with one fault. Raises ValueError for a CEL expression that can't be compiled."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._program = _compiled(fault.object) if fault.object else None
        self._selector = labels.parse(fault.labels) if fault.labels else None

    async def matches(self, request: Request, read: Read) -> bool:
        """`read` returns the objects of the request, and is called only if the fault depends on them."""
        if not self._chooses(request) or not self._has_effect(request):
            return False
        if self._program is None and self._selector is None and not _applies(request, self._fault):
            return True
        subject = await read()
        if _applies(request, self._fault) and subject.old is not None:
            return False  # a quota counts new objects
        if subject.shown is None:
            return False
        if self._selector is not None and not self._selector.matches(metadata(subject.shown).get("labels") or {}):
            return False
        return self._program is None or self._holds(self._program, subject)

    def matches_webhook(self, name: str) -> bool:
        """Reports whether the fault is for calls of the webhook."""
        return bool(self._fault.webhook) and _is_one_of(name, self._fault.webhook)

    def matches_api_service(self, name: str) -> bool:
        """Reports whether the fault is for calls of the APIService's server."""
        return bool(self._fault.apiservice) and _is_one_of(name, self._fault.apiservice)

    def _chooses(self, request: Request) -> bool:
        """Reports whether the URL and the client are those of the fault."""
        fault, info, user = self._fault, request.info, request.user
        if (
            fault.webhook
            or fault.apiservice
            or request.path.startswith(TEST_CONTROL)
            or (not fault.bundled and is_bundled(request))
        ):
            return False
        if fault.path:
            return _is_one_of(request.path, fault.path)
        if not info.resource_request or info.verb not in (fault.verb or _VERBS):
            return False
        return (
            _is_one_of(info.group, fault.group)
            and _is_one_of(info.version, fault.version)
            and _is_resource(info.group, info.resource, info.subresource, fault.resource)
            and _is_one_of(info.subresource, fault.subresource)
            and _is_one_of(info.namespace, fault.namespace)
            and _is_one_of(info.name, fault.name)
            and _is_one_of(user.name, fault.user)
            and (not fault.user_group or any(_is_one_of(group, fault.user_group) for group in user.groups))
            and (not fault.user_agent or _is_one_of(request.header(b"user-agent"), fault.user_agent))
            and (not fault.connection or _is_one_of(_address(request), fault.connection))
        )

    def _has_effect(self, request: Request) -> bool:
        """Reports whether the fault has an effect on requests of this verb, so that no others are counted."""
        fault, verb = self._fault, request.info.verb
        ends = fault.status or fault.hang or fault.latency or fault.reset or fault.truncate is not None or fault.rate
        return bool(
            (ends and (fault.when == "before" or verb in WRITES) and (fault.reset != "after" or verb in WRITES))
            or (fault.watches and verb == "watch" and (fault.expire != "resume" or _resumes(request)))
            or (fault.stale is not None and verb in READS)
            or (fault.holder and verb in LEASE_VERBS and request.info.resource == "leases")
            or (fault.quota and request.info.namespace and not request.info.subresource and _may_create(request))
            or (fault.expire_continue and verb == "list" and request.param("continue"))
        )

    @staticmethod
    def _holds(program: Program, subject: Subject) -> bool:
        missing = BadField("no such object")
        names = {
            name: missing if value is None else value
            for name, value in (("object", subject.shown), ("oldObject", subject.old))
        }
        return program.evaluate(names).value is True


def _compiled(expression: str) -> Program:
    declared = Declared({"object": types.DYN, "oldObject": types.DYN})
    try:
        return typed.compile_typed(expression, declared, types.BOOL)
    except ValueError as error:
        problem = str(error).splitlines()[0].removeprefix("compilation failed: ERROR: ")
        raise ValueError(
            f"object is a CEL expression such as object.spec.replicas > 3, not {expression!r}: {problem}"
        ) from None


def _is_one_of(text: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(text == pattern or fnmatchcase(text, pattern) for pattern in patterns)


def _is_resource(group: str, resource: str, subresource: str, patterns: Sequence[str]) -> bool:
    """`leases` and `leases.coordination.k8s.io` choose the resource itself, `pods/status` and `pods/*` subresources."""
    if not patterns:
        return True
    for pattern in patterns:
        named, _, below = pattern.partition("/")
        plural, _, of_group = named.partition(".")
        below_fits = _is_one_of(subresource, (below,)) if below else not subresource
        if below_fits and _is_one_of(resource, (plural,)) and (not of_group or _is_one_of(group, (of_group,))):
            return True
    return False


def _may_create(request: Request) -> bool:
    return request.info.verb == "create" or request.header(b"content-type").startswith(_APPLY)


def _applies(request: Request, fault: Fault) -> bool:
    return bool(fault.quota) and request.info.verb == "patch"


def _resumes(request: Request) -> bool:
    return request.param("resourceVersion") not in ("", "0")


def _address(request: Request) -> str:
    client: Any = request.scope.get("client") or ("", 0)
    return f"{client[0]}:{client[1]}"
