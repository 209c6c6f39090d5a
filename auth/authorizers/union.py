"""Several authorizers as one: the first ALLOW or DENY wins.

Upstream: k8s.io/apiserver/pkg/authorization/union/union.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, RuleResolver, UserInfo

# Looked up once: an attribute of an enumeration is not free.
_NO_OPINION: Final = Decision.NO_OPINION


class Union:
    """Authorizers in order. With no decision the reasons of all are joined by newlines, which is what a 403 shows.

    `names`: the name of each authorizer, which precedes its reason, as since 1.37; without names the reasons are alone.
    """

    def __init__(
        self, authorizers: Sequence[Authorizer], resolvers: Sequence[RuleResolver] = (), names: Sequence[str] = ()
    ) -> None:
        prefixes = [f"{name}: " for name in names] or [""] * len(authorizers)
        self._authorizers = tuple(zip(authorizers, prefixes, strict=True))
        self._resolvers = tuple(resolvers)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        reasons, errors = list[str](), list[str]()
        for authorizer, prefix in self._authorizers:
            try:
                decision, reason = await authorizer.authorize(attributes)
            except EvaluationError as error:
                if error.decision is not _NO_OPINION:
                    raise
                errors.append(str(error))
                decision, reason = error.decision, error.reason
            if decision is not _NO_OPINION:
                return decision, reason
            if reason:
                reasons.append(prefix + reason)
        if errors:
            raise EvaluationError(_aggregate(errors), reason="\n".join(reasons))
        return _NO_OPINION, "\n".join(reasons)

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        """Returns the rules of all resolvers, one after the other; incomplete if one is."""
        resource: list[dict[str, list[str]]] = []
        other: list[dict[str, list[str]]] = []
        incomplete, errors = False, list[str]()
        for resolver in self._resolvers:
            some, more, partial, error = await resolver.rules_for(user, namespace)
            resource += some
            other += more
            incomplete = incomplete or partial
            errors += [error] if error else []
        return resource, other, incomplete, _aggregate(errors)


def _aggregate(errors: list[str]) -> str:
    """Several errors as one text, equal ones once (upstream: errors.NewAggregate)."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
