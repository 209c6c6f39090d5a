"""Whether the certificate policies of a chain are valid, where any policy is good enough.

Upstream: crypto/x509/verify.go {policiesValid}; RFC 5280 6.1, as RFC 9618 changes it.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.auth.certificates.certificate import Certificate
from fakeapiserver.auth.certificates.extensions import Extensions

_ANY: Final = "2.5.29.32.0"
# A valid policy, and the policies that are expected of the next certificate for it.
_Level = dict[str, frozenset[str]]


def policies_are_valid(chain: Sequence[Certificate]) -> bool:
    """`chain` has the client's certificate first. The policies of its last certificate don't matter."""
    if len(chain) == 1:
        return True
    count = len(chain)
    limits = _Limits(count)
    level: _Level = {_ANY: frozenset({_ANY})}
    for index in range(count - 2, -1, -1):
        certificate, extensions = chain[index], chain[index].extensions
        self_issued = certificate.issuer == certificate.subject
        takes_any = limits.inhibit_any > 0 or (index > 0 and self_issued)
        level = _next(level, extensions.policies, takes_any=takes_any)
        if limits.explicit == 0 and not level:
            return False
        if index:
            if any(_ANY in mapping for mapping in extensions.mappings):
                return False
            level = _mapped(level, extensions, may_map=limits.mapping > 0)
            limits.step(extensions, self_issued=self_issued)
    explicit = max(limits.explicit - 1, 0)
    if chain[0].extensions.explicit_policy == 0:
        explicit = 0
    return explicit > 0 or bool(level)


class _Limits:
    """The number of certificates that may follow before a rule begins to hold, for each rule."""

    def __init__(self, count: int) -> None:
        self.explicit = self.mapping = self.inhibit_any = count

    def step(self, extensions: Extensions, *, self_issued: bool) -> None:
        if not self_issued:
            self.explicit, self.mapping, self.inhibit_any = (
                max(limit - 1, 0) for limit in (self.explicit, self.mapping, self.inhibit_any)
            )
        self.explicit = _lower(self.explicit, extensions.explicit_policy)
        self.mapping = _lower(self.mapping, extensions.inhibit_mapping)
        self.inhibit_any = _lower(self.inhibit_any, extensions.inhibit_any)


def _lower(limit: int, value: int | None) -> int:
    return limit if value is None or value < 0 else min(limit, value)


def _next(level: _Level, policies: Sequence[str], *, takes_any: bool) -> _Level:
    expected = frozenset().union(*level.values())
    found = {
        policy: frozenset({policy}) for policy in policies if policy != _ANY and (policy in expected or _ANY in level)
    }
    if _ANY in policies and takes_any:
        found |= {policy: frozenset({policy}) for policy in expected if policy not in found}
    return found


def _mapped(level: _Level, extensions: Extensions, *, may_map: bool) -> _Level:
    mapped = dict(level)
    for issuer in dict.fromkeys(issuer for issuer, _ in extensions.mappings):
        subjects = frozenset(subject for source, subject in extensions.mappings if source == issuer)
        if not may_map:
            mapped.pop(issuer, None)
        elif issuer in mapped or _ANY in level:
            mapped[issuer] = subjects
    return mapped
