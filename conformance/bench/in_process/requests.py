"""Prints the processor microseconds of whole requests without sockets, one figure for each operation: the best of some rounds.

`python -m conformance.bench.in_process.requests [--controllers] [--only OPERATION …] [--count N] [--rounds N]`. A request passes the
whole handler chain, with a bearer token, RBAC, priority and fairness, the request log and the default admission plugins. With
`--controllers` the default controllers run as well, and what they do until they are at rest counts.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config

_TOKEN: Final = "bench"
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_PODS: Final = "/api/v1/namespaces/default/pods"
_JSON: Final = "application/json"
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


_encode: Final = msgspec.json.Encoder().encode  # compact, as Go's


class Call(Struct, frozen=True):
    method: str
    path: str
    content_type: str = ""
    body: bytes = b""
    query: bytes = b""


def _config_map(name: str, i: int) -> bytes:
    """About 2 KB, as bench/loader's."""
    meta = {
        "name": name,
        "labels": {"app": "bench", "tenth": f"tenth-{i % 10}"},
        "annotations": {"example.com/note": "n" * 100},
    }
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"index": str(i), "payload": "payload " * 200},
    }
    return _encode(obj)


def _pod(name: str) -> bytes:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    container = {
        "name": "web",
        "image": "registry.example/web:1.2",
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [{"name": "MODE", "value": "bench"}],
        "resources": resources,
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
    }
    meta = {"name": name, "labels": {"app": "web", "pod-template-hash": "6f7d8c9b5"}}
    spec = {"containers": [container]}
    return _encode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def _patch(number: int) -> bytes:
    return _encode({"data": {"index": f"changed {number}"}})


def _applied(name: str, number: int) -> bytes:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"applied": str(number)}}
    return _encode(obj)


# The i-th request of a round; a round's objects are created by its first two operations and deleted by its last two.
OPERATIONS: Final[Mapping[str, Callable[[int, int], Call]]] = {
    "create_configmap": lambda r, i: Call("POST", _CONFIG_MAPS, _JSON, _config_map(f"c-{r}-{i}", i)),
    "create_pod": lambda r, i: Call("POST", _PODS, _JSON, _pod(f"p-{r}-{i}")),
    "get_configmap": lambda r, i: Call("GET", f"{_CONFIG_MAPS}/c-{r}-{i}"),
    "get_pod": lambda r, i: Call("GET", f"{_PODS}/p-{r}-{i}"),
    "merge_patch": lambda r, i: Call("PATCH", f"{_CONFIG_MAPS}/c-{r}-{i}", _MERGE, _patch(i)),
    "merge_patch_pod": lambda r, i: Call(
        "PATCH", f"{_PODS}/p-{r}-{i}", _MERGE, b'{"metadata":{"labels":{"index":"%d"}}}' % i
    ),
    "apply": lambda r, i: Call(
        "PATCH", f"{_CONFIG_MAPS}/c-{r}-{i}", _APPLY, _applied(f"c-{r}-{i}", i), b"fieldManager=bench&force=true"
    ),
    "delete_pod": lambda r, i: Call("DELETE", f"{_PODS}/p-{r}-{i}", query=b"gracePeriodSeconds=0"),
    "delete_configmap": lambda r, i: Call("DELETE", f"{_CONFIG_MAPS}/c-{r}-{i}"),
}
_NEEDED: Final = ("create_configmap", "create_pod")


class Client:
    """Sends requests to a server in this process, as bytes that came from a socket."""

    def __init__(self, server: LocalServer) -> None:
        assert server.api is not None
        self._application = server.api.application

    async def send(self, call: Call) -> None:
        headers = [
            (b"host", b"localhost"),
            (b"authorization", b"Bearer " + _TOKEN.encode()),
            (b"user-agent", b"bench/1"),
        ]
        if call.content_type:
            headers += [(b"content-type", call.content_type.encode()), (b"content-length", b"%d" % len(call.body))]
        scope = {
            "type": "http",
            "method": call.method,
            "path": call.path,
            "raw_path": call.path.encode(),
            "query_string": call.query,
            "headers": headers,
            "extensions": {},
            "client": ("127.0.0.1", 40000),
        }

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": call.body, "more_body": False}

        async def collect(message: MutableMapping[str, Any]) -> None:
            if message.get("status", 200) >= 300:
                raise RuntimeError(f"{call.method} {call.path}: {message}")

        await self._application(scope, receive, collect)


async def measure(server: LocalServer, names: Sequence[str], count: int, rounds: int) -> dict[str, float]:
    """Returns the best processor microseconds of each operation."""
    client = Client(server)
    best: dict[str, float] = {}
    for number in range(rounds):
        for name, call_of in OPERATIONS.items():
            if name not in names and name not in _NEEDED and not name.startswith("delete"):
                continue
            calls = [call_of(number, i) for i in range(count)]
            started = time.process_time()
            for call in calls:
                await client.send(call)
            if server.controllers is not None:
                await server.controllers.settle()
            microseconds = (time.process_time() - started) / count * 1e6
            best[name] = min(best.get(name, microseconds), microseconds)
    return {name: round(best[name], 1) for name in names}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controllers", action="store_true", help="run the default controllers")
    parser.add_argument("--only", nargs="+", choices=list(OPERATIONS), default=list(OPERATIONS), metavar="OPERATION")
    parser.add_argument("--count", type=int, default=500, help="requests of an operation in a round (default 500)")
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(f'{_TOKEN},admin,1,"system:masters"\n')
        controllers = ("*",) if arguments.controllers else ("none",)
        server = LocalServer(Config(token_auth_file=tokens, controllers=controllers), listens=False)
        await server.start()
        print(json.dumps(await measure(server, arguments.only, arguments.count, arguments.rounds)))
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
