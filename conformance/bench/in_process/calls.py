"""Counts the calls of functions that each kind of request costs: `python -m conformance.bench.in_process.calls [--write]`.

A client sends the same requests over HTTPS to a cluster in this process. Counted are the calls of this package's functions, and those that
they make of functions in C: the same in each run of one Python version, however busy the machine is. So are those of events for watchers,
and of the life of a pod on a simulated node. `--write` renews calls.json, with which tests/conformance/test_calls.py compares.
"""

import json
import os
import ssl
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

import fakeapiserver
from fakeapiserver import Cluster

FIGURES: Final = Path(__file__).with_name("calls.json")
PYTHON: Final = f"{sys.version_info[0]}.{sys.version_info[1]}"
_PACKAGE: Final = str(Path(fakeapiserver.__file__).parent.resolve())
_FOLDERS: Final = (_PACKAGE, *(str(Path(_PACKAGE, name).resolve()) for name in ("auth", "admission")))
_WARM_UPS: Final = 8
_REPEATS: Final = 9
_LISTED: Final = 100
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_CORE: Final = "/api/v1/namespaces/default"
_WATCHED: Final = "/api/v1/namespaces/kube-public/configmaps"
_WATCHERS: Final = 10
_DELETED: Final = 10
_PODS: Final = 10
# Virtual seconds in which pods on a simulated node begin to run, or are gone after their deletion.
_LIFE_SECONDS: Final = 60.0
_STOPPED_AT: Final = "2026-01-01T00:00:00Z"
_APPS: Final = "/apis/apps/v1/namespaces/default/deployments"
_CUSTOM: Final = "/apis/example.com/v1/namespaces/default/widgets"
_POD_SPEC: Final = {
    "containers": [
        {
            "name": "web",
            "image": "web:1",
            "ports": [{"containerPort": 80}],
            "env": [{"name": "LEVEL", "value": "info"}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }
    ]
}
_DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "minimum": 0}, "color": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
# A request: method, path, body, type of the body.
Request = tuple[str, str, object, str]


def config_map(name: str, value: str = "x") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "bench"}}, "data": {"key": value}}


def _deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": _POD_SPEC}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _applied(number: int) -> Request:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"key": f"v{number}"}}
    return "PATCH", f"{_CORE}/configmaps/applied?fieldManager=bench&force=true", body, _APPLY


def _custom(number: int) -> Request:
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}, "spec": {"size": 1}}
    return "POST", _CUSTOM, body, ""


def _review(number: int) -> Request:
    attributes = {"verb": "get", "resource": "pods", "namespace": "default"}
    body = {"kind": "SubjectAccessReview", "spec": {"user": f"user-{number % 3}", "resourceAttributes": attributes}}
    return "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body, ""


# name -> the request with a number.
KINDS: Final[dict[str, Callable[[int], Request]]] = {
    "get a config map": lambda number: ("GET", f"{_CORE}/configmaps/listed-0", None, ""),
    "get what isn't there": lambda number: ("GET", f"{_CORE}/configmaps/missing", None, ""),
    f"list {_LISTED} config maps": lambda number: ("GET", f"{_CORE}/configmaps?labelSelector=listed", None, ""),
    "list a page of 10": lambda number: ("GET", f"{_CORE}/configmaps?limit=10", None, ""),
    "create a config map": lambda number: ("POST", f"{_CORE}/configmaps", config_map(f"c{number}"), ""),
    "update a config map": lambda number: (
        "PUT",
        f"{_CORE}/configmaps/listed-1",
        config_map("listed-1", f"v{number}"),
        "",
    ),
    "merge patch": lambda number: ("PATCH", f"{_CORE}/configmaps/listed-2", {"data": {"key": f"v{number}"}}, _MERGE),
    "server-side apply": _applied,
    "delete a config map": lambda number: ("DELETE", f"{_CORE}/configmaps/c{number}", None, ""),
    "create a pod": lambda number: (
        "POST",
        f"{_CORE}/pods",
        {"metadata": {"name": f"p{number}"}, "spec": _POD_SPEC},
        "",
    ),
    "get a pod": lambda number: ("GET", f"{_CORE}/pods/p0", None, ""),
    "status of a pod": lambda number: (
        "PATCH",
        f"{_CORE}/pods/p1/status",
        {"status": {"message": f"m{number}"}},
        _MERGE,
    ),
    f"delete a collection of {_DELETED}": lambda number: (
        "DELETE",
        f"{_CORE}/configmaps?labelSelector=doomed",
        None,
        "",
    ),
    "create a deployment": lambda number: ("POST", _APPS, _deployment(f"d{number}"), ""),
    "create a custom object": _custom,
    "SubjectAccessReview": _review,
}
# name -> the requests that are sent before each one that is counted.
_PREPARATIONS: Final[dict[str, Sequence[Request]]] = {
    f"delete a collection of {_DELETED}": [
        ("POST", f"{_CORE}/configmaps", {"metadata": {"name": f"doomed-{each}", "labels": {"doomed": "yes"}}}, "")
        for each in range(_DELETED)
    ],
}


class Counter:
    """Counts calls in the thread that calls `begin`."""

    def __init__(self) -> None:
        self.calls = 0
        self._is_ours: dict[str, bool] = {}

    def begin(self) -> None:
        sys.setprofile(self._count)

    def end(self) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            path = frame.f_code.co_filename
            is_ours = self._is_ours.get(path)
            if is_ours is None:
                is_ours = self._is_ours[path] = str(Path(path).resolve()).startswith(_FOLDERS)
            self.calls += is_ours


class Sender:
    """Sends requests over one connection."""

    def __init__(self, cluster: Cluster) -> None:
        host = cluster.url.removeprefix("https://")
        self._connection = HTTPSConnection(host, context=ssl.create_default_context(cadata=cluster.ca.decode()))
        self._headers = {"Authorization": f"Bearer {cluster.token}", "User-Agent": "bench"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def send(self, request: Request) -> bytes:
        """Returns the body of the answer. Raises RuntimeError if the request is refused, but for a 404."""
        method, path, body, kind = request
        headers = {**self._headers, **({"Content-Type": kind or "application/json"} if body is not None else {})}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300 and answer.status != 404:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return content

    def watch(self, path: str, revision: str) -> HTTPResponse:
        """Returns the answer to a watch, whose lines are events. The connection sends nothing else from then on."""
        self._connection.request("GET", f"{path}?watch=true&resourceVersion={revision}", headers=self._headers)
        return self._connection.getresponse()


@contextmanager
def counting(cluster: Cluster) -> Iterator[Counter]:
    """Counts the calls in the cluster's thread as long as the block runs."""
    counter = Counter()

    async def begin() -> None:
        counter.begin()

    async def end() -> None:
        counter.end()

    cluster._run(begin)
    try:
        yield counter
    finally:
        cluster._run(end)


def counts() -> dict[str, int]:
    """Returns the calls of everything that is counted."""
    return {**_counts_of_requests(), f"write with {_WATCHERS} watchers": _of_watchers(), "life of a pod": _of_pods()}


def _counts_of_requests() -> dict[str, int]:
    """Returns the median calls of each kind of request, once it has been sent several times."""
    with Cluster(controllers=(), seed=1, stopped_at=_STOPPED_AT) as cluster, Sender(cluster) as sender:
        cluster.apply(_DEFINITION)
        for number in range(_LISTED):
            body = config_map(f"listed-{number}", "x" * 200)
            body["metadata"]["labels"]["listed"] = "yes"
            sender.send(("POST", f"{_CORE}/configmaps", body, ""))
        with counting(cluster) as counter:
            return {name: int(statistics.median(_counted(sender, counter, name))) for name in KINDS}


def _counted(sender: Sender, counter: Counter, name: str) -> Iterator[int]:
    for number in range(_WARM_UPS + _REPEATS):
        for request in _PREPARATIONS.get(name, ()):
            sender.send(request)
        before = counter.calls
        sender.send(KINDS[name](number))
        if number >= _WARM_UPS:
            yield counter.calls - before


def _of_watchers() -> int:
    """Returns the median calls of a write until each of several watchers has its event."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(controllers=(), seed=1, stopped_at=_STOPPED_AT))
        sender = stack.enter_context(Sender(cluster))
        revision = json.loads(sender.send(("POST", _WATCHED, config_map("watched"), "")))["metadata"]["resourceVersion"]
        watches = [stack.enter_context(Sender(cluster)).watch(_WATCHED, revision) for _ in range(_WATCHERS)]
        counter, found = stack.enter_context(counting(cluster)), list[int]()
        for number in range(_WARM_UPS + _REPEATS):
            before = counter.calls
            sender.send(("PATCH", f"{_WATCHED}/watched", {"data": {"key": f"v{number}"}}, _MERGE))
            for watch in watches:
                if f'"v{number}"'.encode() not in watch.readline():
                    raise RuntimeError("a watcher got another event")
            found.append(counter.calls - before)
        return int(statistics.median(found[_WARM_UPS:]))


def _of_pods() -> int:
    """Returns the calls of a pod's life on a simulated node: it is created, scheduled, started, deleted and gone. Those of the controllers
    and of virtual time are among them."""
    with Cluster(nodes=1, seed=1, stopped_at=_STOPPED_AT) as cluster, Sender(cluster) as sender:
        _let_pods_live(cluster, sender)
        with counting(cluster) as counter:
            before = counter.calls
            _let_pods_live(cluster, sender)
            return (counter.calls - before) // _PODS


def _let_pods_live(cluster: Cluster, sender: Sender) -> None:
    for number in range(_PODS):
        sender.send(("POST", f"{_CORE}/pods", {"metadata": {"name": f"p{number}"}, "spec": _POD_SPEC}, ""))
    for request, running in ((None, _PODS), (("DELETE", f"{_CORE}/pods", None, ""), 0)):
        if request is not None:
            sender.send(request)
        cluster.clock.advance(_LIFE_SECONDS)
        pods = json.loads(sender.send(("GET", f"{_CORE}/pods", None, "")))["items"]
        if [pod["status"]["phase"] for pod in pods] != ["Running"] * running:
            raise RuntimeError(f"not {running} pods run")


def recorded() -> dict[str, int] | None:
    """Returns the committed counts for this Python version, or None without such counts."""
    figures: dict[str, dict[str, int]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return figures.get(PYTHON)


def main(words: Sequence[str]) -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets, and so the number of comparisons, depends on it
        command = [sys.executable, "-m", "conformance.bench.in_process.calls", *words]
        sys.exit(subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False).returncode)
    found = counts()
    if "--write" in words:
        figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        FIGURES.write_text(json.dumps(figures | {PYTHON: found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
