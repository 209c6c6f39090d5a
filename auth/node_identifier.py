"""The node of a user. Upstream: k8s.io/kubernetes/pkg/auth/nodeidentifier/default.go."""

from typing import Final

from fakeapiserver.auth.interfaces import UserInfo

_PREFIX: Final = "system:node:"
_GROUP: Final = "system:nodes"


def node_name(user: UserInfo) -> str | None:
    """Returns the node's name, or None if the user isn't a node."""
    if not user.name.startswith(_PREFIX) or _GROUP not in user.groups:
        return None
    return user.name.removeprefix(_PREFIX)
