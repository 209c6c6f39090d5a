"""Whether a flow schema is about a request.

Upstream: k8s.io/apiserver/pkg/util/flowcontrol/rule.go, conc_alloc.go; apihelpers/helpers.go for the order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request_info import RequestInfo

Matches = Callable[[RequestInfo, UserInfo], bool]
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def by_precedence(flow_schemas: Iterable[Object]) -> list[Object]:
    """In the order in which requests are matched against them: lower precedence first, then by name."""
    return sorted(flow_schemas, key=lambda obj: (obj["spec"].get("matchingPrecedence", 0), obj["metadata"]["name"]))


def compile_rules(rules: Sequence[Mapping[str, Any]]) -> Matches:
    """Compiles a flow schema's `spec.rules` into a function. A rule matches if one of its subjects and one of its resource or path rules
    match.
    """
    compiled = [(_subjects(rule), _resource_rules(rule), _path_rules(rule)) for rule in rules]

    def matches(info: RequestInfo, user: UserInfo) -> bool:
        for is_subject, is_resource, is_path in compiled:
            if is_subject(user) and (is_resource(info) if info.resource_request else is_path(info)):
                return True
        return False

    return matches


def _subjects(rule: Mapping[str, Any]) -> Callable[[UserInfo], bool]:
    users, groups, accounts, namespaces = set(), set(), set(), []
    for subject in rule.get("subjects") or ():
        kind = subject.get("kind")
        if kind == "User" and subject.get("user"):
            users.add(subject["user"].get("name", ""))
        elif kind == "Group" and subject.get("group"):
            groups.add(subject["group"].get("name", ""))
        elif kind == "ServiceAccount" and subject.get("serviceAccount"):
            account = subject["serviceAccount"]
            prefix = f"{_SERVICE_ACCOUNT}{account.get('namespace', '')}:"
            if account.get("name") == "*":
                namespaces.append(prefix)
            else:
                accounts.add(prefix + account.get("name", ""))
    if "*" in users or "*" in groups:
        return lambda _: True
    names, prefixes = users | accounts, tuple(namespaces)
    return lambda user: user.name in names or user.name.startswith(prefixes) or not groups.isdisjoint(user.groups)


def _contains(values: Sequence[str] | None, wildcard: str = "*") -> Callable[[str], bool]:
    """Upstream's containsString: the wildcard counts only where it stands alone."""
    if list(values or ()) == [wildcard]:
        return lambda _: True
    return frozenset(values or ()).__contains__


def _resource_rules(rule: Mapping[str, Any]) -> Callable[[RequestInfo], bool]:
    compiled = [
        (
            _contains(item.get("verbs")),
            _contains(item.get("resources")),
            _contains(item.get("apiGroups")),
            _contains(item.get("namespaces")),
            bool(item.get("clusterScope")),
        )
        for item in rule.get("resourceRules") or ()
    ]

    def matches(info: RequestInfo) -> bool:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        for verb, resources, group, namespace, cluster_scope in compiled:
            placed = namespace(info.namespace) if info.namespace else cluster_scope
            if placed and verb(info.verb) and resources(resource) and group(info.group):
                return True
        return False

    return matches


def _path_rules(rule: Mapping[str, Any]) -> Callable[[RequestInfo], bool]:
    compiled = []
    for item in rule.get("nonResourceRules") or ():
        urls = item.get("nonResourceURLs") or ()
        # upstream takes a URL without a star for the start of others too
        prefixes = tuple(url.removesuffix("*").removesuffix("/") + "/" for url in urls)
        compiled.append((_contains(item.get("verbs")), "*" in urls, frozenset(urls), prefixes))

    def matches(info: RequestInfo) -> bool:
        for verb, every, urls, prefixes in compiled:
            if verb(info.verb) and (every or info.path in urls or info.path.startswith(prefixes)):
                return True
        return False

    return matches
