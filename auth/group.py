"""The group of all authenticated users.

Upstream: k8s.io/apiserver/pkg/authentication/group/authenticated_group_adder.go.
"""

from typing import Final

from msgspec.structs import replace

from fakeapiserver.auth.interfaces import UserInfo

AUTHENTICATED: Final = "system:authenticated"
_SETTLED: Final = frozenset({AUTHENTICATED, "system:unauthenticated"})


def add_authenticated(user: UserInfo) -> UserInfo:
    """With the group, unless the method has already said which of the two groups applies."""
    if user.name == "system:anonymous" or not _SETTLED.isdisjoint(user.groups):
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
