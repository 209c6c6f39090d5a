"""The smallest roles that allow some requests.

Nothing upstream does this; audit2rbac derives the same from an audit log.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.evidence.entry import RequestEntry

_API_VERSION: Final = "rbac.authorization.k8s.io/v1"
# With one of these verbs on all names a user can do anything: roles grant them only for the names that were requested.
_BY_NAME: Final = frozenset({"escalate", "bind", "impersonate", "approve", "sign", "attest"})
# The paths that every authenticated user may read (system:discovery, system:public-info-viewer), and the test control.
_EVERYBODYS: Final = ("/api", "/apis", "/healthz", "/livez", "/readyz", "/openapi", "/version", "/fakeapiserver")
# Reviews of one's own access, which every authenticated user may create (system:basic-user).
_OWN_REVIEWS: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
_CREATED: Final = 201


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


def accesses(entries: Iterable[RequestEntry]) -> Iterator[Access]:
    """Yields the accesses that were allowed to clients. Updates and patches that created their object needed a right to create, too."""
    for entry in entries:
        if entry.status in (0, 401, 403) or not _needs_a_right(entry):
            continue
        if not entry.resource:
            yield Access(entry.user, entry.verb, path=entry.path)
            continue
        kind = (entry.group, entry.resource, entry.subresource, entry.namespace)
        name = entry.name if entry.verb != "create" else ""
        yield Access(entry.user, entry.verb, *kind, name)
        if entry.status == _CREATED and entry.verb in ("update", "patch"):
            yield Access(entry.user, "create", *kind)


def _needs_a_right(entry: RequestEntry) -> bool:
    if not entry.resource:
        return not f"{entry.path}/".startswith(tuple(f"{path}/" for path in _EVERYBODYS))
    return entry.resource not in _OWN_REVIEWS


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
    """Writes the objects as YAML. Raises OSError."""
    path.write_bytes(encoded(objects))


def encoded(objects: Iterable[Object]) -> bytes:
    """Returns the objects as YAML, a document for each."""
    return b"---\n".join(yaml.encode(obj) for obj in objects)
