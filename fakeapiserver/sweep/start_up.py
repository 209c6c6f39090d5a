"""Finds out whether an operator has come up."""

from collections.abc import Set
from typing import Final

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep.launcher import Launcher
from fakeapiserver.sweep.surroundings import Surroundings

_WEBHOOK_LOOK: Final = 0.5


def has_webhooks(operator: Launcher, surroundings: Surroundings) -> bool:
    """Reports whether the operator serves webhooks, as its command line or the scenario says."""
    return operator.serves_webhooks or surroundings.has_webhooks


class StartUp:
    """The signs of a started operator: its first request, and, if it has webhooks, an answer of their server."""

    def __init__(self, serves_webhooks: bool) -> None:
        self._serves_webhooks = serves_webhooks
        self._up = ""  # the last user that is known to have come up

    def missing(self, cluster: Cluster, user: str) -> str:
        """Returns a sentence about what the operator that runs as `user` hasn't done yet, or "" if it has come up."""
        if self._up == user:
            return ""
        if not len(cluster.requests.all().by(user=user)):
            return "it sends no requests"
        if self._serves_webhooks:
            try:
                cluster.webhooks.wait(_WEBHOOK_LOOK)
            except TimeoutError as error:
                return f"there is {error}; the command gets these as {{webhook-port}} and {{webhook-cert-dir}}"
        self._up = user
        return ""


def watched(requests: RequestList) -> Set[str]:
    """Returns the resources that are watched by these requests, without leases: `deployments.apps`."""
    watches = (entry for entry in requests.watches if entry.resource != "leases")
    return {f"{entry.resource}.{entry.group}".rstrip(".") for entry in watches}
