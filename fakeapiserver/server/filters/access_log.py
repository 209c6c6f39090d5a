"""Records what clients were allowed and denied, and writes the smallest roles that allow a test's own traffic.

Nothing upstream does this; audit2rbac derives the same from an audit log.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.auth.attributes import forbidden_message
from fakeapiserver.auth.authorizers.rbac_escalation import rules_cover
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, UserInfo

if TYPE_CHECKING:
    from fakeapiserver.registry.rbac.policybased import Grant

# The user of a Cluster's own requests (`cluster.apply(…)`).
CLUSTER_USER: Final = "fakeapiserver:cluster"
_MOST: Final = 100_000
_MOST_DENIED: Final = 10_000
_RBAC: Final = "rbac.authorization.k8s.io"
_API_VERSION: Final = f"{_RBAC}/v1"
# Who everybody is that has shown any credentials: what they may do, no role has to say.
_EVERYBODY: Final = UserInfo("", groups=("system:authenticated",))
# With one of these verbs on all names a user can do anything: roles grant them only for the names that were requested.
_BY_NAME: Final = frozenset({"escalate", "bind", "impersonate", "approve", "sign", "attest"})


class Access(NamedTuple):
    """An access that a user requested, once or many times. `path` is set for requests that aren't for a resource."""

    user: str
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Denied(Struct, frozen=True):
    """A request that was refused; as text it is the sentence of its 403, with the authorizers' reason."""

    access: Access
    message: str

    def __str__(self) -> str:
        return self.message


class AccessLog:
    """Wraps the authorizer and records the requests and its decisions. `bundled` are the users of the cluster's own components, whose
    requests are not recorded.
    """

    def __init__(self, authorizer: Authorizer, bundled: Collection[str] = frozenset()) -> None:
        self._authorizer = authorizer
        self._bundled = bundled
        self._allowed: dict[Access, Attributes] = {}
        self._denied: deque[Denied] = deque(maxlen=_MOST_DENIED)
        self._grants: deque[Grant] = deque(maxlen=_MOST_DENIED)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        decision, reason = await self._authorizer.authorize(attributes)
        if attributes.user.name in self._bundled:
            return decision, reason
        access = _access(attributes)
        if decision is not Decision.ALLOW:
            message = forbidden_message(attributes)
            self._denied.append(Denied(access, f"{message}: {reason}" if reason else message))
        else:
            self._keep(access, attributes)
        return decision, reason

    def beside(self, counts: Callable[[Attributes], bool]) -> Authorizer:
        """Returns an authorizer for further checks during a request. An allowed check for which `counts` returns true is recorded; a denied
        check is reported by its caller.
        """
        return _Beside(self._authorizer, counts, self._keep)

    def granted(self, grant: "Grant") -> None:
        """Records that a user granted rights to others."""
        if grant.user not in self._bundled:
            self._grants.append(grant)

    def _keep(self, access: Access, attributes: Attributes) -> None:
        if access.user not in self._bundled and access not in self._allowed and len(self._allowed) < _MOST:
            self._allowed[access] = attributes

    def denied(self) -> list[Denied]:
        return list(self._denied)

    def forget(self) -> None:
        self._allowed.clear()
        self._denied.clear()
        self._grants.clear()

    async def used(self, user: str, name: str, *, names: bool) -> list[Object]:
        """The roles; see Cluster.rbac.used."""
        wanted = []
        for access, attributes in list(self._allowed.items()):
            if user and access.user != user:
                continue
            decision, _ = await self._authorizer.authorize(replace(attributes, user=_EVERYBODY))
            if decision is not Decision.ALLOW:
                wanted.append(access)
        wanted += self._unearned([grant for grant in self._grants if user in ("", grant.user)], wanted, names)
        return list(roles(wanted, name, names=names))

    def _unearned(self, grants: "list[Grant]", wanted: list[Access], names: bool) -> list[Access]:
        """Returns the accesses (escalate, bind) that users need to grant rights that they don't have."""
        if not grants:
            return []

        rules = {role["metadata"].get("namespace", ""): role["rules"] for role in roles(wanted, "", names=names)}
        unearned = []
        for grant in grants:
            owned = [*rules.get("", ()), *(rules.get(grant.namespace, ()) if grant.namespace else ())]
            if rules_cover(owned, grant.rules):
                access = Access(grant.user, grant.verb, _RBAC, grant.resource, "", grant.namespace, grant.name)
                unearned.append(access)
        return unearned


class _Beside(Struct, frozen=True):
    _authorizer: Authorizer
    _counts: Callable[[Attributes], bool]
    _keep: Callable[[Access, Attributes], None]

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        decision, reason = await self._authorizer.authorize(attributes)
        if decision is Decision.ALLOW and self._counts(attributes):
            self._keep(_access(attributes), attributes)
        return decision, reason


def is_a_right_of_its_own(attributes: Attributes) -> bool:
    """Reports whether a check by admission is for a right that the write needs. Policies also check for rights that allow an exception."""
    return attributes.resource == "signers" or attributes.subresource == "finalizers"


def _access(a: Attributes) -> Access:
    if not a.resource_request:
        return Access(a.user.name, a.verb, path=a.path)
    return Access(a.user.name, a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name)


def roles(wanted: Iterable[Access], name: str, *, names: bool) -> Iterable[Object]:
    """Yields a cluster role for the accesses outside of namespaces, then a role for each namespace that has accesses."""
    by_namespace: dict[str, list[Access]] = defaultdict(list)
    for access in _needed([_as_told(access, names) for access in wanted]):
        by_namespace[access.namespace].append(access)
    for namespace in sorted(by_namespace):
        roles_there = by_namespace[namespace]
        rules = [*_resource_rules(roles_there), *_path_rules(roles_there)]
        if namespace:
            meta = {"name": name, "namespace": namespace}
            yield {"apiVersion": _API_VERSION, "kind": "Role", "metadata": meta, "rules": rules}
        else:
            yield {"apiVersion": _API_VERSION, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _as_told(access: Access, names: bool) -> Access:
    """Returns the access as a rule states it: without the user, and mostly without the object's name."""
    return access._replace(user="", name=access.name if names or access.verb in _BY_NAME else "")


def _needed(wanted: Iterable[Access]) -> list[Access]:
    """Without what follows from the rest: what is allowed everywhere is so in a namespace, and for any name for one."""
    needed = dict.fromkeys(wanted)

    def follows(a: Access) -> bool:
        wider = {a._replace(namespace=namespace, name=name) for namespace in ("", a.namespace) for name in ("", a.name)}
        return any(other != a and other in needed for other in wider)

    return [access for access in needed if not follows(access)]


def _resource_rules(wanted: Iterable[Access]) -> Iterable[Object]:
    """Resources of one group that take the same verbs share a rule."""
    verbs: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for a in wanted:
        if not a.path:
            resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
            verbs[a.group, a.name, resource].add(a.verb)
    together: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, name, resource), allowed in sorted(verbs.items()):
        together[group, name, tuple(sorted(allowed))].append(resource)
    for (group, name, found_verbs), resources in together.items():
        rule: Object = {"apiGroups": [group], "resources": resources, "verbs": list(found_verbs)}
        yield rule | ({"resourceNames": [name]} if name else {})


def _path_rules(wanted: Iterable[Access]) -> Iterable[Object]:
    verbs: dict[str, set[str]] = defaultdict(set)
    for a in wanted:
        if a.path:
            verbs[a.path].add(a.verb)
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, allowed in sorted(verbs.items()):
        together[tuple(sorted(allowed))].append(path)
    for found_verbs, paths in together.items():
        yield {"nonResourceURLs": paths, "verbs": list(found_verbs)}


def write(path: Path, objects: Iterable[Object]) -> None:
    """Writes the objects as YAML, a document for each. Raises OSError."""
    path.write_bytes(b"---\n".join(yaml.encode(obj) for obj in objects))
