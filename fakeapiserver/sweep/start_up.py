"""Finds out from its requests whether an operator has come up, and whether it goes on."""

import time
from collections.abc import Set
from typing import Final

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.requests import Requests
from fakeapiserver.evidence import election
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep import lines
from fakeapiserver.sweep.launcher import Launcher
from fakeapiserver.sweep.surroundings import Surroundings

_WEBHOOK_LOOK: Final = 0.5
_ISOLATE: Final = "add `isolate: true` to the scenario (Linux)"
# What operators write that expect to be in a pod, and what helps.
_HINTS: Final = {
    "unable to find leader election namespace": "it looks for its namespace in the files of a pod: name the namespace (many operators "
    f"have a flag or a variable such as POD_NAMESPACE for it), switch leader election off, or {_ISOLATE}",
    "unable to load in-cluster configuration": f"it looks for the API server from within a pod: let it use KUBECONFIG, or {_ISOLATE}",
    "address already in use": f"its port is fixed: give it a free one by {{port}} in the command, or {_ISOLATE}",
}


def last_lines(output: str) -> str:
    """The last lines of an operator that doesn't start, and a hint if they show what it lacks."""
    last = lines.last(output)
    hint = next((hint for sign, hint in _HINTS.items() if sign in last), "")
    return f"{last}\n{hint}" if hint else last


def has_webhooks(operator: Launcher, surroundings: Surroundings) -> bool:
    """Reports whether the operator serves webhooks, as its command line or the scenario says."""
    return operator.serves_webhooks or surroundings.has_webhooks


def watched(requests: RequestList) -> Set[str]:
    """The resources of the watches among the requests, apart from leases."""
    watches = (entry for entry in requests.watches if entry.resource != "leases")
    return {f"{entry.resource}.{entry.group}".rstrip(".") for entry in watches}


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


class Activity:
    """Whether an operator that has paused, e.g. for a connection to a pod, goes on. `seconds`: for which that is asked at most."""

    def __init__(self, requests: Requests, users: str, seconds: float) -> None:
        self._requests = requests
        self._users = users
        self._end = time.monotonic() + seconds
        self._mark = requests.mark()

    def goes_on(self) -> bool:
        """Reports whether the operator has sent a request since the last call, other than for its leases. False when the time is up."""
        if time.monotonic() > self._end:
            return False
        mark, self._mark = self._mark, self._requests.mark()
        records = set(election.records_of(self._requests.all().by(user=self._users)))
        return any(
            each.verb != "watch"
            and each.resource != "leases"
            and (each.resource, each.namespace, each.name) not in records
            for each in self._requests.since(mark).by(user=self._users)
        )
