"""Prints the processor seconds of the creation and of a GET of a pod, without and with a recording: the best of some rounds each."""

import asyncio
import json
import time
from typing import Final

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.in_process import InProcessRoundTripper
from fakeapiserver.server.options.config import Config

_PODS: Final = "/api/v1/namespaces/default/pods"
_USER: Final = UserInfo("admin", groups=("system:masters", "system:authenticated"))
_ROUNDS: Final = 4
_REQUESTS: Final = 400


class Requests:
    """Sends requests to a server in this process."""

    def __init__(self, api: APIServer) -> None:
        self._transport = InProcessRoundTripper(api.application, _USER, lambda change: None, as_client=True)
        self._created = 0

    async def send(self, method: str, path: str, body: bytes = b"") -> None:
        headers = [("Content-Type", "application/json"), ("User-Agent", "bench")]
        exchange = await self._transport.round_trip(method, path, headers, body, None)
        await exchange.body()
        await exchange.finish()
        assert exchange.status < 300, exchange.status

    async def create(self) -> None:
        self._created += 1
        pod = {"metadata": {"name": f"p{self._created}"}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
        await self.send("POST", _PODS, json.dumps(pod).encode())

    async def get(self) -> None:
        await self.send("GET", f"{_PODS}/p1")


async def seconds(*, records: bool) -> tuple[float, float]:
    """Processor seconds of a creation and of a GET."""
    api = APIServer(Config(controllers=("none",), records=records))
    await api.start()
    requests = Requests(api)
    await requests.create()
    results = []
    for call in (requests.create, requests.get):
        started = time.process_time()
        for _ in range(_REQUESTS):
            await call()
        results.append((time.process_time() - started) / _REQUESTS)
    await api.stop()
    return results[0], results[1]


async def main() -> None:
    rounds: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(_ROUNDS):
        for records, found in rounds.items():
            found.append(await seconds(records=records))
    best = {records: [min(column) for column in zip(*found, strict=True)] for records, found in rounds.items()}
    names = ("create", "get")
    print(json.dumps({name: [best[False][place], best[True][place]] for place, name in enumerate(names)}))


if __name__ == "__main__":
    asyncio.run(main())
