"""Prevents privilege escalation: users may only grant permissions that they have.

Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, k8s.io/kubernetes/pkg/registry/rbac/validation.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any, Final

from fakeapiserver.apimachinery.allowance import spend
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.auth.interfaces import UserInfo

PolicyRule = dict[str, Any]

# Upstream returns all of them; a role of a megabyte has more than fit into memory.
MAX_MISSING: Final = 20_000
# Of a look at one single verb and resource, in the units of effort.py.
_PIECE_COST: Final = 10

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
    owned = _Owned(owner_rules)
    return list(islice((piece for rule in wanted for piece in _uncovered(owned, rule)), MAX_MISSING))


class _Owned:
    """The rules of an owner. Each method returns the numbers of the rules that cover a value, as bits."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self._count = len(rules)
        self._having = {key: defaultdict[str, list[int]](list) for _, key in _PARTS}
        for number, rule in enumerate(rules):
            for key, having in self._having.items():
                for value in rule.get(key) or ():
                    having[value].append(number)
        self.unnamed = self._bits([number for number, rule in enumerate(rules) if not rule.get("resourceNames")])
        # The last ones only: all that a role can ask for could be gigabytes.
        self.with_value = lru_cache(maxsize=1024)(self._with_value)

    def _bits(self, numbers: Sequence[int]) -> int:
        bits = bytearray(self._count // 8 + 1)
        for number in numbers:
            bits[number >> 3] |= 1 << (number & 7)
        return int.from_bytes(bits, "little")

    def _with_value(self, key: str, value: str) -> int:
        return self._bits(self._having[key].get(value, ()))

    def with_any(self, key: str, value: str) -> int:
        return self.with_value(key, "*") | self.with_value(key, value)

    def with_resource(self, resource: str) -> int:
        _, slash, subresource = resource.partition("/")
        covering = self.with_any("resources", resource)
        return covering | self.with_value("resources", f"*/{subresource}") if slash else covering

    def with_name(self, name: str) -> int:
        return self.with_value("resourceNames", name) | self.unnamed

    def with_url(self, url: str) -> int:
        covering = 0
        for own in self._having["nonResourceURLs"]:
            if own == url or (own.endswith("*") and url.startswith(own.rstrip("*"))):
                covering |= self.with_value("nonResourceURLs", own)
        return covering


def _uncovered(owned: _Owned, rule: PolicyRule) -> Iterator[PolicyRule]:
    """Each value gets the set of the owner's rules that cover it, as bits; what is covered has a rule in all of its sets."""
    verbs = [(value, owned.with_any("verbs", value)) for value in rule.get("verbs") or ()]
    groups = [(value, owned.with_any("apiGroups", value)) for value in rule.get("apiGroups") or ()]
    resources = [(value, owned.with_resource(value)) for value in rule.get("resources") or ()]
    names: list[tuple[str | None, int]] = [(name, owned.with_name(name)) for name in rule.get("resourceNames") or ()]
    for (group, a), (resource, b), (verb, c), (name, d) in product(
        groups, resources, verbs, names or [(None, owned.unnamed)]
    ):
        spend(_PIECE_COST)
        if not a & b & c & d:
            piece = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            yield piece if name is None else piece | {"resourceNames": [name]}
    urls = [(value, owned.with_url(value)) for value in rule.get("nonResourceURLs") or ()]
    for (url, a), (verb, b) in product(urls, verbs):
        spend(_PIECE_COST)
        # A piece about a URL has no names, groups or resources: only rules without names cover it.
        if not a & b & owned.unnamed:
            yield {"nonResourceURLs": [url], "verbs": [verb]}


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
