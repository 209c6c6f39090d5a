"""Counts what an authorizer decides.

Upstream: k8s.io/apiserver/pkg/authorization/metrics/metrics.go.
"""

from typing import Final

from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError
from fakeapiserver.auth.measures import DECISIONS

_NO_OPINION: Final = Decision.NO_OPINION


class Instrumented:
    """Another authorizer. What it has no opinion of decides nothing and isn't counted."""

    def __init__(self, kind: str, name: str, delegate: Authorizer, instruments: Instruments) -> None:
        self._labels = {Decision.ALLOW: ("allowed", name, kind), Decision.DENY: ("denied", name, kind)}
        self._delegate = delegate
        self._decisions = instruments.counter(DECISIONS)

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
