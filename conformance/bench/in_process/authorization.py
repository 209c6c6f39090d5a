"""Prints the processor seconds of warm requests by 50 users, with many roles and bindings: `… TOKEN_FILE ROLES BINDINGS`."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

from fakeapiserver.endpoints.request import Request
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.filters.authentication import authenticate
from fakeapiserver.server.filters.authorization import authorize
from fakeapiserver.server.filters.request_info import parsed_request_info
from fakeapiserver.server.options.config import Config

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_GROUP: Final = "rbac.authorization.k8s.io"
_USERS: Final = 50
_OBJECTS: Final = 5000


class Client:
    """Sends requests to the application itself; an unexpected status is an error."""

    def __init__(self, api: APIServer) -> None:
        self._application = api.application

    async def send(self, method: str, path: str, expected: int, token: str = "admin", body: Any = None) -> None:
        headers = [(b"authorization", b"Bearer " + token.encode()), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": headers,
            "extensions": {},
        }
        data = b"" if body is None else json.dumps(body).encode()

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def collect(message: MutableMapping[str, Any]) -> None:
            if message.get("status", expected) != expected:
                raise RuntimeError(f"{method} {path}: {message}")

        await self._application(scope, receive, collect)


async def _fill(client: Client, roles: int, bindings: int) -> None:
    for i in range(roles):
        rule = {
            "verbs": ["get", "list", "update"],
            "apiGroups": ["", "apps"],
            "resources": ["pods", "deployments", f"r{i}"],
        }
        body: dict[str, Any] = {"metadata": {"name": f"role-{i}"}, "rules": [rule, rule]}
        await client.send("POST", f"{_RBAC}/clusterroles", 201, body=body)
    for i in range(bindings):
        body = {
            "metadata": {"name": f"binding-{i}"},
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": f"role-{i % roles}"},
            "subjects": [{"kind": "User", "apiGroup": _GROUP, "name": f"user-{i % _USERS}"}],
        }
        await client.send("POST", f"{_RBAC}/namespaces/default/rolebindings", 201, body=body)
    config_map = {"metadata": {"name": "web"}}
    await client.send("POST", "/api/v1/namespaces/default/configmaps", 201, body=config_map)


async def _seconds(act: Callable[[int], Awaitable[None]], count: int, at_once: int) -> float:
    """Returns the median processor time: what else the machine does then is not this server's cost."""
    seconds = []
    for start in range(0, count, at_once):
        begun = time.process_time()
        for i in range(start, start + at_once):
            await act(i)
        seconds.append((time.process_time() - begun) / at_once)
    warm = sorted(seconds[len(seconds) // 4 :])
    return warm[len(warm) // 2]


async def main(tokens: Path, roles: int, bindings: int) -> None:
    api = APIServer(Config(token_auth_file=tokens))
    await api.start()
    client = Client(api)
    await _fill(client, roles, bindings)

    async def receive() -> MutableMapping[str, Any]:
        raise RuntimeError("a GET has no body")

    requests = [
        Request(
            "GET",
            f"/api/v1/namespaces/default/pods/web-{i}",
            {},
            [(b"authorization", b"Bearer user-%d" % (i % _USERS))],
            receive,
            {},
        )
        for i in range(_OBJECTS)
    ]
    access, metrics = api.access, api.metrics

    async def authorized(i: int) -> None:
        request = requests[i % len(requests)]
        request.info = parsed_request_info(request)
        request.user = await authenticate(request, access.authentication.authenticator, metrics.authentication)
        await authorize(request, access.of_requests, metrics.authorization)

    async def get(i: int) -> None:
        await client.send("GET", "/api/v1/namespaces/default/configmaps/web", 200)

    async def refuse(i: int) -> None:
        await client.send("GET", f"/api/v1/namespaces/default/secrets/web-{i % _OBJECTS}", 403, f"user-{i % _USERS}")

    async def review(i: int) -> None:
        asked = {"verb": "get", "resource": "pods", "namespace": "default", "name": f"web-{i % _OBJECTS}"}
        body = {"spec": {"user": f"user-{i % _USERS}", "resourceAttributes": asked}}
        await client.send("POST", _REVIEWS, 201, body=body)

    seconds = {
        "authorize": await _seconds(authorized, 20000, 200),
        "whole_get": await _seconds(get, 4000, 50),
        "refuse": await _seconds(refuse, 4000, 50),
        "review": await _seconds(review, 2000, 50),
    }
    await api.stop()
    print(json.dumps(seconds))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
