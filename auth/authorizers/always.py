"""Authorizers that look at little: AlwaysAllow, AlwaysDeny and the privileged group.

Upstream: k8s.io/apiserver/pkg/authorization/authorizerfactory/builtin.go.
"""

from typing import Final

from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo

_Rules = tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]


class AlwaysAllow:
    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        return Decision.ALLOW, ""

    async def rules_for(self, user: UserInfo, namespace: str) -> _Rules:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return [everything], [{"verbs": ["*"], "nonResourceURLs": ["*"]}], False, ""


class AlwaysDeny:
    """Upstream's name; it has no opinion, so an authorizer after it may still allow."""

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        return Decision.NO_OPINION, "Everything is forbidden."

    async def rules_for(self, user: UserInfo, namespace: str) -> _Rules:
        return [], [], False, ""


# Made once: these two are asked about every request.
_ALLOW: Final = (Decision.ALLOW, "")
_NO_OPINION: Final = (Decision.NO_OPINION, "")


class PrivilegedGroups:
    """Allows everything to members of these groups, before any other authorizer is asked."""

    def __init__(self, *groups: str) -> None:
        self._groups = frozenset(groups or ("system:masters",))

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if self._groups.isdisjoint(attributes.user.groups):
            return _NO_OPINION
        return _ALLOW
