"""Counts what an authorizer decides.

Upstream: k8s.io/apiserver/pkg/authorization/metrics/metrics.go.
"""

from collections import Counter
from typing import Final

from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError

# By the authorizer's type and name, and what it said: `allowed` or `denied`.
Decisions = Counter[tuple[str, str, str]]
_NO_OPINION: Final = Decision.NO_OPINION


class Instrumented:
    """Another authorizer. What it has no opinion of decides nothing and isn't counted."""

    def __init__(self, kind: str, name: str, delegate: Authorizer, decisions: Decisions) -> None:
        self._labels = {Decision.ALLOW: (kind, name, "allowed"), Decision.DENY: (kind, name, "denied")}
        self._delegate = delegate
        self._decisions = decisions

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        try:
            decision = await self._delegate.authorize(attributes)
        except EvaluationError as error:
            self._count(error.decision)
            raise
        self._count(decision[0])
        return decision

    def _count(self, decision: Decision) -> None:
        if decision is not _NO_OPINION:
            self._decisions[self._labels[decision]] += 1
