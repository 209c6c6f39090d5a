"""Impersonation: continues a request as the user of its Impersonate-* headers, if its own user may impersonate that user.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/impersonation: constrained_impersonation.go (KEP-5284, the gate
ConstrainedImpersonation, on by default in 1.36), and impersonation.go where it is off.
"""

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import StatusError, aggregated, new_bad_request
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.url import path_unescape
from fakeapiserver.apimachinery.instruments import Family, Instruments, exponential
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, UserInfo
from fakeapiserver.endpoints.request import Request

# Upstream: endpoints/filters/impersonation/metrics/metrics.go.
_LABELS: Final = ("decision", "mode")
_BOUNDS: Final = exponential(0.001, 2, 15)
_METRIC: Final = "apiserver_impersonation"
ATTEMPTS: Final = Family(f"{_METRIC}_attempts_total", "Requests to go on as another user", _LABELS)
ATTEMPT_SECONDS: Final = Family(
    f"{_METRIC}_attempts_duration_seconds", "Seconds until it was clear whether a user may", _LABELS, _BOUNDS
)
QUESTIONS: Final = Family(f"{_METRIC}_authorization_attempts_total", "Questions to the authorizer", _LABELS)
QUESTION_SECONDS: Final = Family(
    f"{_METRIC}_authorization_attempts_duration_seconds", "Seconds that these questions took", _LABELS, _BOUNDS
)
_PREFIX: Final = b"impersonate-"
_EXTRA: Final = b"impersonate-extra-"
_NODE: Final = "system:node:"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_NODE_NAME_KEY: Final = "authentication.kubernetes.io/node-name"
_MASTERS: Final = "system:masters"
_AUTHENTICATION: Final = ("authentication.k8s.io", "v1")
_CORE: Final = ("", "v1")
# From so many names on, one for `*` is tried first.
_MANY: Final = 4
_MAX_REMEMBERED: Final = 10_000


class Impersonation:
    """Impersonates users for a server. It remembers the mode by which a user was last allowed and tries that mode first.

    Without `constrained` only the legacy mode exists, and nothing is counted.
    """

    def __init__(self, authorizer: Authorizer, instruments: Instruments, *, constrained: bool = True) -> None:
        self._authorizer = authorizer
        self._constrained = constrained
        self._modes = _MODES if constrained else (_Mode(alone=True),)
        self._instruments = instruments if constrained else Instruments()
        self._last: dict[str, _Mode] = {}

    async def user(self, request: Request, attributes: Attributes) -> UserInfo:
        """The user that a request goes on as: its own where no header asks for another.

        `attributes` are the request's own. StatusError 400 for headers without a user, 403 (of the first mode that applies)
        when no mode lets the user do so."""
        wanted = _wanted(request.headers)
        if not wanted.name and (wanted.uid or wanted.groups or wanted.extra):
            raise _without_name(wanted, constrained=self._constrained)
        if not wanted.name:
            return request.user
        start = perf_counter()
        try:
            mode, user = await self._allowed(wanted, request.user, attributes)
        except StatusError:
            self._count("denied", "", start)
            raise
        self._count("allowed", mode.name or "legacy", start)
        if request.audit is not None:
            request.audit.log_impersonated_user(user, mode.verb if mode.name else "")
        return user

    def _count(self, decision: str, mode: str, start: float) -> None:
        self._instruments.count(ATTEMPTS, decision, mode)
        self._instruments.observe(ATTEMPT_SECONDS, perf_counter() - start, decision, mode)

    async def _allowed(self, wanted: UserInfo, requestor: UserInfo, attributes: Attributes) -> "tuple[_Mode, UserInfo]":
        """By which mode, and with all its groups. StatusError 403 of the first mode that applies."""
        own, refused = requestor.name, None
        last = self._last.get(own)
        for mode in self._modes if last is None else (last, *(mode for mode in self._modes if mode is not last)):
            if not mode.applies(wanted, requestor):
                continue
            try:
                user = await _Check(mode, attributes, self._authorizer, self._instruments).user(wanted)
            except StatusError as error:
                refused = refused or error
            else:
                self._remember(own, mode)
                return mode, user
        assert refused is not None, "the last mode applies to everyone"
        raise refused

    def _remember(self, name: str, mode: "_Mode") -> None:
        if len(self._last) >= _MAX_REMEMBERED:
            self._last.clear()
        self._last[name] = mode


def _wanted(headers: list[tuple[bytes, bytes]]) -> UserInfo:
    """The user the headers ask for; one without a name where they name none."""
    impersonation_headers = [
        (name, value.decode("utf-8", "replace")) for name, value in headers if name.startswith(_PREFIX)
    ]
    name = next((value for header, value in impersonation_headers if header == b"impersonate-user"), "")
    uid = next((value for header, value in impersonation_headers if header == b"impersonate-uid"), "")
    groups = tuple(value for header, value in impersonation_headers if header == b"impersonate-group")
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in impersonation_headers:
        if header.startswith(_EXTRA):
            key = path_unescape(header.removeprefix(_EXTRA).decode("latin-1"))
            extra[key] = (*extra.get(key, ()), value)
    return UserInfo(name, uid, groups, extra)


def _without_name(wanted: UserInfo, *, constrained: bool) -> StatusError:
    if constrained:
        error = new_bad_request(f"requested {_go_syntax(wanted)} without impersonating a user name")
    else:
        error = new_bad_request(f"requested [{' '.join(_references(wanted))}] without impersonating a user")
    error.headers = (("X-Content-Type-Options", "nosniff"),)
    return error


def _references(user: UserInfo) -> Iterator[str]:
    """Yields the requested identity as the object references that the legacy filter makes of it: Go prints their fields in order."""
    version = "/".join(_AUTHENTICATION)
    for group in user.groups:
        yield f"{{Group  {group}    }}"
    for key, values in user.extra.items():
        for value in values:
            yield f"{{UserExtra  {value}  {version}  {key}}}"
    if user.uid:
        yield f"{{UID  {user.uid}  {version}  }}"


def _go_syntax(user: UserInfo) -> str:
    """The user as Go's %#v prints it."""
    extra = ", ".join(f"{go_quote(key)}:{_go_strings(values)}" for key, values in sorted(user.extra.items()))
    extras = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    groups = _go_strings(user.groups)
    return f'&user.DefaultInfo{{Name:"", UID:{go_quote(user.uid)}, Groups:{groups}, Extra:{extras}}}'


def _go_strings(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(go_quote, values))}}}" if values else "[]string(nil)"


class _Mode(Struct, frozen=True):
    """A way to be allowed. Constrained modes ask twice: may the user do this request `impersonate-on:<mode>:<verb>`, and may
    it `impersonate:<mode>` that user? The legacy mode asks only whether it may `impersonate`. `alone`:
    there is no other (upstream's older filter, which asks for the uid last, and names no version)."""

    name: str = ""
    alone: bool = False

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    def applies(self, wanted: UserInfo, requestor: UserInfo) -> bool:
        """Nodes and service accounts have modes of their own, in which nothing but their name is asked for."""
        only_name = not (wanted.uid or wanted.groups or wanted.extra)
        node, account = node_name(wanted.name), service_account(wanted.name)
        match self.name:
            case "associated-node":
                bound_to = requestor.extra.get(_NODE_NAME_KEY)
                return only_name and bool(node) and bool(service_account(requestor.name)) and bound_to == (node,)
            case "arbitrary-node":
                return only_name and bool(node)
            case "serviceaccount":
                return only_name and account is not None
            case "user-info":
                return not node and account is None
        return True


_MODES: Final = (*map(_Mode, ("associated-node", "arbitrary-node", "serviceaccount", "user-info")), _Mode())


class _Check(Struct, frozen=True):
    """The checks of a mode for a request; each raises StatusError 403."""

    mode: _Mode
    attributes: Attributes
    authorizer: Authorizer
    instruments: Instruments

    async def user(self, wanted: UserInfo) -> UserInfo:
        """The impersonated user with all its groups."""
        if self.mode.name:
            await self._allowed(replace(self._own, verb=f"impersonate-on:{self.mode.name}:{self.attributes.verb}"))
        groups = await self._name(wanted)
        if not self.mode.alone:
            await self._uid(wanted.uid)
        await self._groups(wanted.groups)
        await self._extra(wanted.extra)
        if self.mode.alone:
            await self._uid(wanted.uid)
        if wanted.name == "system:anonymous":
            everyone = "system:unauthenticated"
        else:
            everyone = "system:authenticated" if "system:unauthenticated" not in groups else ""
        if everyone and everyone not in groups:
            groups = (*groups, everyone)
        return replace(wanted, groups=groups)

    async def _name(self, wanted: UserInfo) -> tuple[str, ...]:
        """The groups that the user has by what it is."""
        node, account = node_name(wanted.name) if self.mode.name else "", service_account(wanted.name)
        if node:
            # who impersonates the node it runs on may do so on every node
            asked = "*" if self.mode.name == "associated-node" else node
            await self._allowed(self._asking("nodes", asked, *self._resources))
            return ("system:nodes",)
        if account is not None:
            namespace, name = account
            asking = self._asking("serviceaccounts", name, *self._resources)
            await self._allowed(replace(asking, namespace=namespace))
            return wanted.groups or ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        await self._allowed(self._asking("users", wanted.name, *self._resources))
        return wanted.groups

    async def _uid(self, uid: str) -> None:
        if uid:
            await self._allowed(self._asking("uids", uid, *_AUTHENTICATION))

    async def _groups(self, groups: tuple[str, ...]) -> None:
        asking = self._asking("groups", "", *self._resources)
        if self.mode.name:
            if "" in groups:
                raise forbidden_error(asking, "impersonating the empty string group is not allowed")
            if _MASTERS in groups:
                named = replace(asking, name=_MASTERS)
                raise forbidden_error(named, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and await self._is_allowed(replace(asking, name="*")):
                return
        for group in groups:
            await self._allowed(replace(asking, name=group))

    async def _extra(self, extra: Mapping[str, tuple[str, ...]]) -> None:
        asking = self._asking("userextras", "", *_AUTHENTICATION)
        if self.mode.name:
            if problem := next(_extra_problems(extra), ""):
                raise forbidden_error(asking, problem)
            many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
            if many and await self._is_allowed(replace(asking, subresource="*", name="*")):
                return
        for key, values in extra.items():
            for value in values:
                await self._allowed(replace(asking, subresource=key, name=value))

    @property
    def _resources(self) -> tuple[str, str]:
        """Returns the API group and version under which users, groups, nodes and service accounts are authorized."""
        if self.mode.alone:
            return ("", "")
        return _AUTHENTICATION if self.mode.name else _CORE

    @property
    def _own(self) -> Attributes:
        """The request's attributes. A service account on its own node counts as the same on every node."""
        if self.mode.name != "associated-node":
            return self.attributes
        user = self.attributes.user
        keys = {"authentication.kubernetes.io/associated-node-keys": tuple(sorted(user.extra))}
        return replace(self.attributes, user=replace(user, extra=keys))

    def _asking(self, resource: str, name: str, group: str, version: str) -> Attributes:
        return Attributes(
            user=self._own.user,
            verb=self.mode.verb,
            resource_request=True,
            api_group=group,
            api_version=version,
            resource=resource,
            name=name,
        )

    async def _is_allowed(self, attributes: Attributes) -> bool:
        decision, _ = await self._ask(attributes)
        return decision is Decision.ALLOW

    async def _allowed(self, attributes: Attributes) -> None:
        decision, reason = await self._ask(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden_error(attributes, reason)

    async def _ask(self, attributes: Attributes) -> tuple[Decision, str]:
        """Returns the authorizer's decision and reason. An error of the authorizer doesn't allow the request."""
        start = perf_counter()
        try:
            decision, reason = await self.authorizer.authorize(attributes)
        except EvaluationError as error:
            decision, reason = error.decision, error.reason
        labels = ("allowed" if decision is Decision.ALLOW else "denied", self.mode.name or "legacy")
        self.instruments.count(QUESTIONS, *labels)
        self.instruments.observe(QUESTION_SECONDS, perf_counter() - start, *labels)
        return decision, reason


def _extra_problems(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key, values in extra.items():
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        elif errors := names.validate_domain_prefixed_path(key, Path("extra").child("key")):
            yield f"impersonating an invalid key in extra is not allowed: {aggregated(errors)}"
        elif key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {go_quote(key)}"
        elif "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def node_name(username: str) -> str:
    """Returns the node's name (`system:node:n1` -> `n1`), or "" if the user isn't a node."""
    name = username.removeprefix(_NODE) if username.startswith(_NODE) else ""
    return name if name and not names.is_dns1123_subdomain(name) else ""


def service_account(username: str) -> tuple[str, str] | None:
    """`system:serviceaccount:default:web` -> namespace and name (upstream: serviceaccount.SplitUsername)."""
    namespace, colon, name = username.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not username.startswith(_SERVICE_ACCOUNT) or not colon:
        return None
    valid = not names.name_is_dns_label(namespace, False) and not names.name_is_dns_subdomain(name, False)
    return (namespace, name) if valid else None
