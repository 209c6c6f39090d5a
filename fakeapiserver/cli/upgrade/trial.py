"""A run of a command against one minor version of Kubernetes, and what it has left behind."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.cluster import Cluster
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.server.options.config import Config
from fakeapiserver.sweep import states

# Of the log of requests: enough for a suite of some minutes.
_REQUESTS: Final = 200_000
_BYTES: Final = 512 << 20
_HASH: Final = "pod-template-hash"
# What differs between two runs in a message: names in quotes, numbers, times.
_CHANCE: Final = re.compile(r'"[^"]*"|\d+')
# Fields of every created object.
_METADATA: Final = frozenset(
    ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace", "name", "selfLink")
)


class Kind(Struct, frozen=True, order=True):
    """A kind of answers: those that differ in names and numbers only. `text` is a refusal's message or a warning."""

    verb: str
    resource: str
    status: int
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}: {f'{self.status} {self.reason}: ' if self.status else ''}{self.text}"


class Trial(Struct):
    """A command's encounters, and what it left behind.

    - `status`: its exit status. `requests`: how many requests of clients there were.
    - `refusals`, `warnings`: how often, by kind of answer.
    - `state`: the objects at the end, without what follows from chance.
    - `added`: the fields that the server added to objects as they were created, and an example of a value, by resource.
    """

    status: int
    requests: int
    refusals: dict[Kind, int]
    warnings: dict[Kind, int]
    state: states.State
    added: dict[str, dict[str, Any]]


def run(command: Sequence[str], config: Config, version: str) -> Trial:
    """Runs the command with KUBECONFIG set to a fresh server of this version; what it prints goes to standard error.

    Raises OSError, and ValueError for flags that don't go together or that the version doesn't have."""
    config = deepcopy(config)
    config.kubernetes_version = version
    config.kept_requests, config.kept_request_bytes = _REQUESTS, _BYTES
    with Cluster.from_config(config) as cluster:
        variables = {**os.environ, "KUBECONFIG": cluster.kubeconfig}
        given = {stored.key for _, stored, _ in states.objects_of(cluster.snapshot())}
        status = subprocess.run(command, env=variables, stdout=sys.stderr, check=False).returncode
        entries = cluster.requests.all()
        state = _without_hashes(states.state_of(cluster.snapshot(), without=given))
    return Trial(
        status if status >= 0 else 128 - status,
        len(entries),
        Counter(_refusal(entry) for entry in entries if entry.refused),
        Counter(_warning(entry, text) for entry in entries for text in entry.warnings),
        state,
        _added(entries),
    )


def _without_hashes(state: states.State) -> states.State:
    """The state with `*` for the hashes of pod templates, which follow from all fields that a version knows."""
    labels = (obj.get("metadata", {}).get("labels") or {} for obj in state.values())
    hashes = sorted({each[_HASH] for each in labels if each.get(_HASH)})
    if not hashes:
        return state
    pattern = re.compile("|".join(map(re.escape, hashes)))
    return {
        pattern.sub("*", title): msgspec.json.decode(pattern.sub("*", json.dumps(obj))) for title, obj in state.items()
    }


def _refusal(entry: RequestEntry) -> Kind:
    return Kind(entry.verb, _resource(entry), entry.status, entry.reason, _CHANCE.sub("…", entry.message))


def _warning(entry: RequestEntry, text: str) -> Kind:
    return Kind(entry.verb, _resource(entry), 0, "", text)


def _resource(entry: RequestEntry) -> str:
    """`deployments.apps/scale v1`, or the path if it names no resource."""
    if not entry.resource:
        return entry.path
    group = f".{entry.group}" if entry.group else ""
    return f"{entry.resource}{group}{f'/{entry.subresource}' if entry.subresource else ''} {entry.version}"


def _added(entries: Iterable[RequestEntry]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    sent: set[tuple[str, str]] = set()
    for entry in entries:
        if entry.verb != "create" or entry.refused or entry.subresource:
            continue
        resource, body, answer = _resource(entry), entry.body, entry.answer
        if isinstance(body, dict) and isinstance(answer, dict):
            sent |= {(resource, path) for path, _ in _leaves(body)}
            for path, value in _leaves(answer):
                found.setdefault(resource, {}).setdefault(path, value)
    return {
        resource: {path: value for path, value in fields.items() if (resource, path) not in sent}
        for resource, fields in found.items()
    }


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """The values in an object with their paths: `spec.containers[].image`. Metadata of every object is left out."""
    if isinstance(value, Mapping) and value:
        names = [name for name in value if not (path == "metadata" and name in _METADATA)]
        return [leaf for name in names for leaf in _leaves(value[name], f"{path}.{name}" if path else str(name))]
    if isinstance(value, list) and value:
        return [leaf for item in value for leaf in _leaves(item, f"{path}[]")]
    return [(path, value)]
