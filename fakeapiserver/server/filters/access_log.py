"""Records what clients were allowed and denied, for the smallest roles that allow a test's own traffic (evidence/least_rights.py)."""

from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.attributes import forbidden_message
from fakeapiserver.auth.authorizers.rbac_escalation import rules_cover
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, UserInfo
from fakeapiserver.evidence.least_rights import Access, roles

if TYPE_CHECKING:
    from fakeapiserver.registry.rbac.policybased import Grant

# The user of a Cluster's own requests (`cluster.apply(…)`).
CLUSTER_USER: Final = "fakeapiserver:cluster"
_MOST: Final = 100_000
_MOST_DENIED: Final = 10_000
_RBAC: Final = "rbac.authorization.k8s.io"
# Who everybody is that has shown any credentials: what they may do, no role has to say.
_EVERYBODY: Final = UserInfo("", groups=("system:authenticated",))


class Denied(Struct, frozen=True):
    """A request that was refused; as text it is the sentence of its 403, with the authorizers' reason."""

    access: Access
    message: str

    def __str__(self) -> str:
        return self.message


class AccessLog:
    """Wraps the authorizer and records the requests and its decisions. `bundled` are the users of the cluster's own components, whose
    requests are not recorded.
    """

    def __init__(self, authorizer: Authorizer, bundled: Collection[str] = frozenset()) -> None:
        self._authorizer = authorizer
        self._bundled = bundled
        self._allowed: dict[Access, Attributes] = {}
        self._denied: deque[Denied] = deque(maxlen=_MOST_DENIED)
        self._grants: deque[Grant] = deque(maxlen=_MOST_DENIED)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        decision, reason = await self._authorizer.authorize(attributes)
        if attributes.user.name in self._bundled:
            return decision, reason
        access = _access(attributes)
        if decision is not Decision.ALLOW:
            message = forbidden_message(attributes)
            self._denied.append(Denied(access, f"{message}: {reason}" if reason else message))
        else:
            self._keep(access, attributes)
        return decision, reason

    def beside(self, counts: Callable[[Attributes], bool]) -> Authorizer:
        """Returns an authorizer for further checks during a request. An allowed check for which `counts` returns true is recorded; a denied
        check is reported by its caller.
        """
        return _Beside(self._authorizer, counts, self._keep)

    def granted(self, grant: "Grant") -> None:
        """Records that a user granted rights to others."""
        if grant.user not in self._bundled:
            self._grants.append(grant)

    def _keep(self, access: Access, attributes: Attributes) -> None:
        if access.user not in self._bundled and access not in self._allowed and len(self._allowed) < _MOST:
            self._allowed[access] = attributes

    def denied(self) -> list[Denied]:
        return list(self._denied)

    def forget(self) -> None:
        self._allowed.clear()
        self._denied.clear()
        self._grants.clear()

    async def used(self, user: str, name: str, *, names: bool) -> list[Object]:
        """The roles; see Cluster.rbac.used."""
        wanted = []
        for access, attributes in list(self._allowed.items()):
            if user and access.user != user:
                continue
            decision, _ = await self._authorizer.authorize(replace(attributes, user=_EVERYBODY))
            if decision is not Decision.ALLOW:
                wanted.append(access)
        wanted += self._unearned([grant for grant in self._grants if user in ("", grant.user)], wanted, names)
        return list(roles(wanted, name, names=names))

    def _unearned(self, grants: "list[Grant]", wanted: list[Access], names: bool) -> list[Access]:
        """Returns the accesses (escalate, bind) that users need to grant rights that they don't have."""
        if not grants:
            return []

        rules = {role["metadata"].get("namespace", ""): role["rules"] for role in roles(wanted, "", names=names)}
        unearned = []
        for grant in grants:
            owned = [*rules.get("", ()), *(rules.get(grant.namespace, ()) if grant.namespace else ())]
            if rules_cover(owned, grant.rules):
                access = Access(grant.user, grant.verb, _RBAC, grant.resource, "", grant.namespace, grant.name)
                unearned.append(access)
        return unearned


class _Beside(Struct, frozen=True):
    _authorizer: Authorizer
    _counts: Callable[[Attributes], bool]
    _keep: Callable[[Access, Attributes], None]

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        decision, reason = await self._authorizer.authorize(attributes)
        if decision is Decision.ALLOW and self._counts(attributes):
            self._keep(_access(attributes), attributes)
        return decision, reason


def is_a_right_of_its_own(attributes: Attributes) -> bool:
    """Reports whether a check by admission is for a right that the write needs. Policies also check for rights that allow an exception."""
    return attributes.resource == "signers" or attributes.subresource == "finalizers"


def _access(a: Attributes) -> Access:
    if not a.resource_request:
        return Access(a.user.name, a.verb, path=a.path)
    return Access(a.user.name, a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name)
