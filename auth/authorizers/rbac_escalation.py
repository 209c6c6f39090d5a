"""Prevents privilege escalation: users may only grant permissions that they have.

Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, k8s.io/kubernetes/pkg/registry/rbac/validation.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.auth.interfaces import UserInfo

PolicyRule = dict[str, Any]

# Upstream returns all of them; a role of a megabyte has more than fit into memory.
MAX_MISSING: Final = 20_000

# The order in which upstream's message names a rule's parts.
_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def rules_cover(owner_rules: Sequence[PolicyRule], wanted: Sequence[PolicyRule]) -> list[PolicyRule]:
    """Returns the parts of `wanted` that the owner's rules do not cover, as single verbs and resources; at most
    MAX_MISSING.
    """
    return list(islice((piece for rule in wanted for piece in _uncovered(owner_rules, rule)), MAX_MISSING))


def _uncovered(owner_rules: Sequence[PolicyRule], rule: PolicyRule) -> Iterator[PolicyRule]:
    """Each value gets the set of the owner's rules that cover it, as bits; what is covered has a rule in all of its sets."""
    everyone = (1 << len(owner_rules)) - 1
    verbs = _covering(owner_rules, "verbs", rule.get("verbs"), _has)
    groups = _covering(owner_rules, "apiGroups", rule.get("apiGroups"), _has)
    resources = _covering(owner_rules, "resources", rule.get("resources"), _resource_covered)
    unnamed = sum(1 << i for i, owner in enumerate(owner_rules) if not owner.get("resourceNames"))
    names: list[tuple[str | None, int]] = [(None, unnamed)]
    if rule.get("resourceNames"):
        named = _covering(owner_rules, "resourceNames", rule["resourceNames"], _named)
        names = [(name, covering | unnamed) for name, covering in named]
    for (group, a), (resource, b), (verb, c), (name, d) in product(groups, resources, verbs, names):
        if not everyone & a & b & c & d:
            piece = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            yield piece if name is None else piece | {"resourceNames": [name]}
    urls = _covering(owner_rules, "nonResourceURLs", rule.get("nonResourceURLs"), _url_covered)
    for (url, a), (verb, b) in product(urls, verbs):
        # A piece about a URL has no names, groups or resources: only rules without names cover it.
        if not everyone & a & b & unnamed:
            yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covering(
    owner_rules: Sequence[PolicyRule],
    key: str,
    values: Sequence[str] | None,
    covers: Callable[[Sequence[str], str], bool],
) -> list[tuple[str, int]]:
    return [
        (value, sum(1 << i for i, owner in enumerate(owner_rules) if covers(owner.get(key) or (), value)))
        for value in values or ()
    ]


def escalation_message(user: UserInfo, missing: Sequence[PolicyRule], resolution_error: str = "") -> str:
    """The reason of the 403 for a grant with `missing` rights."""
    groups = _quoted(user.groups)
    lines = "\n".join(sorted({compact_string(rule) for rule in compact(missing)}))
    start = (
        f"user {go_quote(user.name)} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n"
    )
    tail = f"; resolution errors: [{resolution_error}]" if resolution_error else ""
    return start + lines + tail


def compact(rules: Sequence[PolicyRule]) -> list[PolicyRule]:
    """Joins broken-down resource rules that differ only by verb."""
    joined: dict[tuple[str, str, str | None], PolicyRule] = {}
    rest: list[PolicyRule] = []
    for rule in rules:
        if rule.get("nonResourceURLs"):
            rest.append(rule)
            continue
        name = rule["resourceNames"][0] if rule.get("resourceNames") else None
        key = (rule["apiGroups"][0], rule["resources"][0], name)
        known = joined.get(key)
        joined[key] = rule if known is None else known | {"verbs": known["verbs"] + rule["verbs"]}
    return rest + list(joined.values())


def compact_string(rule: PolicyRule) -> str:
    """`{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`."""
    return "{" + ", ".join(f"{title}:{_quoted(rule[key])}" for title, key in _PARTS if rule.get(key)) + "}"


def _quoted(values: Sequence[str]) -> str:
    return "[" + " ".join(go_quote(value) for value in values) + "]"


def _has(mine: Sequence[str], value: str) -> bool:
    return "*" in mine or value in mine


def _named(mine: Sequence[str], name: str) -> bool:
    return name in mine


def _resource_covered(mine: Sequence[str], resource: str) -> bool:
    if "*" in mine or resource in mine:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in mine


def _url_covered(mine: Sequence[str], url: str) -> bool:
    return any(own == url or (own.endswith("*") and url.startswith(own.rstrip("*"))) for own in mine)
