"""Finds out whether an operator has come up."""

from typing import Final

from fakeapiserver.cluster.cluster import Cluster

_WEBHOOK_LOOK: Final = 0.5


class StartUp:
    """The signs of a started operator: its first request, and, if it has webhooks, an answer of their server."""

    def __init__(self, has_webhooks: bool) -> None:
        self._has_webhooks = has_webhooks
        self._up = ""  # the last user that is known to have come up

    def missing(self, cluster: Cluster, user: str) -> str:
        """Returns a sentence about what the operator that runs as `user` hasn't done yet, or "" if it has come up."""
        if self._up == user:
            return ""
        if not len(cluster.requests.all().by(user=user)):
            return "it sends no requests"
        if self._has_webhooks:
            try:
                cluster.webhooks.wait(_WEBHOOK_LOOK)
            except TimeoutError as error:
                return f"there is {error}; the command gets these as {{webhook-port}} and {{webhook-cert-dir}}"
        self._up = user
        return ""
