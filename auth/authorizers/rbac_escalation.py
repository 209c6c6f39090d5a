"""Nobody grants rights they do not hold.

Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, k8s.io/kubernetes/pkg/registry/rbac/validation.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.auth.interfaces import UserInfo

PolicyRule = dict[str, Any]

# The order in which upstream's message names a rule's parts.
_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def rules_cover(owner_rules: Sequence[PolicyRule], wanted: Sequence[PolicyRule]) -> list[PolicyRule]:
    """What of `wanted` the owner's rules do not cover, broken down to single verbs and resources; empty when all is covered."""
    pieces = [piece for rule in wanted for piece in break_down(rule)]
    return [piece for piece in pieces if not any(_covers(owner, piece) for owner in owner_rules)]


def escalation_message(user: UserInfo, missing: Sequence[PolicyRule], resolution_error: str = "") -> str:
    """The reason of the 403 for a grant with `missing` rights."""
    groups = _quoted(user.groups)
    lines = "\n".join(sorted({compact_string(rule) for rule in compact(missing)}))
    start = (
        f"user {go_quote(user.name)} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n"
    )
    tail = f"; resolution errors: [{resolution_error}]" if resolution_error else ""
    return start + lines + tail


def break_down(rule: PolicyRule) -> Iterator[PolicyRule]:
    """One rule per group, resource, verb and name, and per URL and verb."""
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or (None,)
    for group, resource, verb, name in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs, names):
        piece = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        yield piece if name is None else piece | {"resourceNames": [name]}
    for url, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [url], "verbs": [verb]}


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


def _covers(owner: PolicyRule, piece: PolicyRule) -> bool:
    """`piece` has at most one of everything."""
    names = owner.get("resourceNames") or ()
    return (
        _has(owner, piece, "verbs")
        and _has(owner, piece, "apiGroups")
        and all(_resource_covered(owner.get("resources") or (), resource) for resource in piece.get("resources", ()))
        and (not names or (bool(piece.get("resourceNames")) and piece["resourceNames"][0] in names))
        and all(_url_covered(owner.get("nonResourceURLs") or (), url) for url in piece.get("nonResourceURLs", ()))
    )


def _has(owner: PolicyRule, piece: PolicyRule, key: str) -> bool:
    mine = owner.get(key) or ()
    return "*" in mine or all(value in mine for value in piece.get(key, ()))


def _resource_covered(mine: Sequence[str], resource: str) -> bool:
    if "*" in mine or resource in mine:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in mine


def _url_covered(mine: Sequence[str], url: str) -> bool:
    return any(own == url or (own.endswith("*") and url.startswith(own.rstrip("*"))) for own in mine)
