"""Several authorizers as one: the first ALLOW or DENY wins.

Upstream: k8s.io/apiserver/pkg/authorization/union/union.go.
"""

from collections.abc import Sequence

from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, RuleResolver, UserInfo


class Union:
    """Authorizers in order. With no decision the reasons of all are joined by newlines, which is what a 403 shows."""

    def __init__(self, authorizers: Sequence[Authorizer], resolvers: Sequence[RuleResolver] = ()) -> None:
        self._authorizers = tuple(authorizers)
        self._resolvers = tuple(resolvers)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        reasons: list[str] = []
        for authorizer in self._authorizers:
            decision, reason = await authorizer.authorize(attributes)
            if decision is not Decision.NO_OPINION:
                return decision, reason
            if reason:
                reasons.append(reason)
        return Decision.NO_OPINION, "\n".join(reasons)

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        """What every resolver lists, one after the other; incomplete when one is."""
        resource: list[dict[str, list[str]]] = []
        other: list[dict[str, list[str]]] = []
        incomplete, errors = False, list[str]()
        for resolver in self._resolvers:
            some, more, partial, error = await resolver.rules_for(user, namespace)
            resource += some
            other += more
            incomplete = incomplete or partial
            errors += [error] if error else []
        text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""
        return resource, other, incomplete, text
