"""What clients were allowed and refused, and the least that would have been enough: roles written from a test's own traffic.

Nothing upstream does this; audit2rbac reads the same out of an audit log.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.attributes import forbidden_message
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, UserInfo

_MOST: Final = 100_000
_MOST_DENIED: Final = 10_000
_API_VERSION: Final = "rbac.authorization.k8s.io/v1"
# Who everybody is that has shown any credentials: what they may do, no role has to say.
_EVERYBODY: Final = UserInfo("", groups=("system:authenticated",))


class Access(NamedTuple):
    """One thing that somebody wanted, however often. `path` is set for what is no resource."""

    user: str
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """A request that was refused; as text it is the sentence of its 403, with the authorizers' reason."""

    access: Access
    message: str

    def __str__(self) -> str:
        return self.message


class AccessLog:
    """Stands in front of the authorizer and keeps what it was asked by requests, and what it answered."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._allowed: dict[Access, Attributes] = {}
        self._denied: deque[Denied] = deque(maxlen=_MOST_DENIED)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        decision, reason = await self._authorizer.authorize(attributes)
        access = _access(attributes)
        if decision is not Decision.ALLOW:
            message = forbidden_message(attributes)
            self._denied.append(Denied(access, f"{message}: {reason}" if reason else message))
        elif access not in self._allowed and len(self._allowed) < _MOST:
            self._allowed[access] = attributes
        return decision, reason

    def denied(self) -> list[Denied]:
        return list(self._denied)

    def forget(self) -> None:
        self._allowed.clear()
        self._denied.clear()

    async def used(self, user: str, name: str, *, names: bool) -> list[Object]:
        """The roles; see Cluster.rbac.used."""
        wanted = []
        for access, attributes in list(self._allowed.items()):
            if user and access.user != user:
                continue
            decision, _ = await self._authorizer.authorize(replace(attributes, user=_EVERYBODY))
            if decision is not Decision.ALLOW:
                wanted.append(access)
        return list(roles(wanted, name, names=names))


def _access(a: Attributes) -> Access:
    if not a.resource_request:
        return Access(a.user.name, a.verb, path=a.path)
    return Access(a.user.name, a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name)


def roles(wanted: Iterable[Access], name: str, *, names: bool) -> Iterable[Object]:
    """A cluster role for what is in no namespace, then a role for each namespace; none for what nobody wanted."""
    by_namespace: dict[str, list[Access]] = defaultdict(list)
    for access in wanted:
        by_namespace[access.namespace].append(access)
    for namespace in sorted(by_namespace):
        found = by_namespace[namespace]
        rules = [*_resource_rules(found, names), *_path_rules(found)]
        if namespace:
            meta = {"name": name, "namespace": namespace}
            yield {"apiVersion": _API_VERSION, "kind": "Role", "metadata": meta, "rules": rules}
        else:
            yield {"apiVersion": _API_VERSION, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _resource_rules(wanted: Iterable[Access], names: bool) -> Iterable[Object]:
    """Resources of one group that take the same verbs share a rule."""
    verbs: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for a in wanted:
        if not a.path:
            resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
            verbs[a.group, a.name if names else "", resource].add(a.verb)
    together: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, name, resource), found in sorted(verbs.items()):
        together[group, name, tuple(sorted(found))].append(resource)
    for (group, name, found_verbs), resources in together.items():
        rule: Object = {"apiGroups": [group], "resources": resources, "verbs": list(found_verbs)}
        yield rule | ({"resourceNames": [name]} if name else {})


def _path_rules(wanted: Iterable[Access]) -> Iterable[Object]:
    verbs: dict[str, set[str]] = defaultdict(set)
    for a in wanted:
        if a.path:
            verbs[a.path].add(a.verb)
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, found in sorted(verbs.items()):
        together[tuple(sorted(found))].append(path)
    for found_verbs, paths in together.items():
        yield {"nonResourceURLs": paths, "verbs": list(found_verbs)}


def write(path: Path, objects: Iterable[Object]) -> None:
    """One YAML document an object. OSError."""
    from fakeapiserver.apimachinery.serializer import yaml

    path.write_bytes(b"---\n".join(yaml.encode(obj) for obj in objects))
