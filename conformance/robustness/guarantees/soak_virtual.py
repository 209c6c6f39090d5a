"""Hours of a cluster's life on its virtual clock: controllers, nodes, leases, events that expire, definitions that come and go."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from conformance.robustness.client import MERGE_PATCH, Client
from conformance.robustness.guarantees.guarantee import Report, mebibytes, progress
from conformance.robustness.guarantees.soak import DEFINITIONS, hourly_growth, without_history
from conformance.robustness.kinds import NAMESPACE, WIDGETS, definition
from conformance.robustness.served import Served, done, served

_CLOCK: Final = "/fakeapiserver/clock"
_SETTLE: Final = "/fakeapiserver/settle"
_CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
_DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_CRON_JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_FLAGS: Final = ("--controllers=*", "--nodes=2")
# Virtual minutes of a round; hours before the first measurement, in which the events of an hour gather; other sizes of each round.
_ROUND: Final = 5
_WARM_UP: Final = 2
_EVENTS: Final = 20
_RENEWALS: Final = 10
_WATCHES: Final = 5
# Shares by which the number of objects and memory may grow in a virtual hour. The controllers' caches of events and of paths, of some
# thousand entries each, take longer than that to fill.
_MORE_OBJECTS: Final = 0.01
_MORE_MEMORY: Final = 0.02
# Seconds of real time that a request may take: five minutes of a cluster are some hundred moments.
_PATIENCE: Final = 120.0
_OBJECTS: Final = re.compile(r"^apiserver_resource_objects\{[^}]*\} (\S+)", re.MULTILINE)
_LABELS: Final = {"app": "soaked"}
_CONTAINERS: Final = [{"name": "main", "image": "soaked"}]


class _Hour(Struct, frozen=True):
    memory: int
    objects: int
    descriptors: int
    threads: int

    def text(self) -> str:
        return f"{mebibytes(self.memory)}, {self.objects:,} objects, {self.descriptors} descriptors, {self.threads} threads"


def soak_virtual(full: bool) -> Report:
    """Eight virtual hours in full, a quarter of one for CI, which is too short to judge memory."""
    rounds = (8 * 60 if full else 15) // _ROUND
    hours = list[_Hour]()
    with served(_FLAGS) as server:
        client = server.client(_PATIENCE)
        done(client.ask("PUT", _CLOCK, {"stopped": True}), 200)
        _prepare(client)
        for number in range(1, rounds + 1):
            _work(client, server, number)
            done(client.ask("PUT", _CLOCK, {"advance": f"{_ROUND}m"}), 200)
            done(client.ask("POST", _SETTLE, {}), 200)
            if number * _ROUND % 60 == 0 or number == rounds:
                hours.append(_measured(client, server))
                progress(f"{number * _ROUND} virtual minutes: {hours[-1].text()}")
        complaints = server.complaints()
    problems = [*complaints, *(_growth(hours[_WARM_UP - 1 :]) if full else ())]
    figures = {"virtual minutes": str(rounds * _ROUND)}
    for number, hour in enumerate(hours, 1):
        figures[f"after hour {number}" if full else "at the end"] = hour.text()
    return Report(figures, problems)


def _prepare(client: Client) -> None:
    done(client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}), 201)
    template = {"metadata": {"labels": _LABELS}, "spec": {"containers": _CONTAINERS}}
    deployment = {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": template}
    done(client.ask("POST", _DEPLOYMENTS, {"metadata": {"name": "soaked"}, "spec": deployment}), 201)
    job = {"template": {"spec": {"containers": _CONTAINERS, "restartPolicy": "Never"}}}
    cron_job = {"schedule": f"*/{_ROUND} * * * *", "jobTemplate": {"spec": job}}
    done(client.ask("POST", _CRON_JOBS, {"metadata": {"name": "soaked"}, "spec": cron_job}), 201)
    done(client.ask("POST", _LEASES, {"metadata": {"name": "soaked"}, "spec": {"holderIdentity": "0"}}), 201)


def _work(client: Client, server: Served, number: int) -> None:
    """The requests of a round."""
    replicas = {"spec": {"replicas": 1 + number % 5}}
    done(client.ask("PATCH", f"{_DEPLOYMENTS}/soaked", replicas, MERGE_PATCH), 200)
    for event in range(_EVENTS):
        involved = {"kind": "Namespace", "name": NAMESPACE, "namespace": NAMESPACE}
        body = {"metadata": {"name": f"soaked-{number}-{event}"}, "involvedObject": involved, "reason": "Soaked"}
        done(client.ask("POST", f"{_CORE}/events", body), 201)
    for renewal in range(_RENEWALS):
        holder = {"spec": {"holderIdentity": f"{number}-{renewal}"}}
        done(client.ask("PATCH", f"{_LEASES}/soaked", holder, MERGE_PATCH), 200)
    _define(client, number)
    for _ in range(_WATCHES):
        watching = server.client()
        next(watching.watch(f"{_CORE}/pods", {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}))
        watching.close()


def _define(client: Client, number: int) -> None:
    """Lets a definition come, with an object, and go."""
    path = f"{DEFINITIONS}/{done(client.ask('POST', DEFINITIONS, definition()), 201)['metadata']['name']}"
    done(client.ask("POST", _SETTLE, {}), 200)
    widget = {"apiVersion": WIDGETS.group_version, "kind": WIDGETS.name, "metadata": {"name": f"w{number}"}}
    done(client.ask("POST", WIDGETS.path, widget), 201)
    done(client.ask("DELETE", path), 200)
    done(client.ask("POST", _SETTLE, {}), 200)


def _measured(client: Client, server: Served) -> _Hour:
    memory = without_history(server)
    objects = sum(float(count) for count in _OBJECTS.findall(client.read("/metrics").decode()))
    return _Hour(memory, int(objects), server.descriptors(), server.threads())


def _growth(hours: Sequence[_Hour]) -> list[str]:
    """Returns what grew from hour to hour, as sentences."""
    seconds = [3600.0 * number for number in range(len(hours))]
    shares = (
        ("memory", hourly_growth(seconds, [hour.memory for hour in hours]), _MORE_MEMORY),
        ("the number of objects", hourly_growth(seconds, [hour.objects for hour in hours]), _MORE_OBJECTS),
    )
    grown = [f"{name} grows by {share:.1%} an hour" for name, share, allowed in shares if share > allowed]
    first, last = hours[0], hours[-1]
    if last.descriptors > first.descriptors or last.threads > first.threads:
        grown.append(f"descriptors and threads grow: {first.text()}; {last.text()}")
    return grown
