"""The FastAPI application under ASGI servers: streams, disconnects, WebSockets, HTTP/2."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from fastapi import Depends, FastAPI, Request, Response
from fastapi.testclient import TestClient
from starlette.middleware.base import BaseHTTPMiddleware
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from fakeapiserver.asgi import APIServerApp, create_app
from tests.asgi_servers import SERVERS

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
EXEC: Final = "/api/v1/namespaces/default/pods/p/exec?command=id&stdout=true"
TIME_OUT: Final = 60.0  # against what hangs
Ways = dict[str, Callable[[], tuple[Any, APIServerApp, str]]]


async def _pass_on(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    return await call_next(request)


async def _depends() -> None:
    pass


def _plain() -> tuple[Any, APIServerApp, str]:
    app = create_app(controllers=())
    return app, app, ""


def _with_middleware() -> tuple[Any, APIServerApp, str]:
    app = create_app(controllers=(), dependencies=[Depends(_depends)])
    app.add_middleware(BaseHTTPMiddleware, dispatch=_pass_on)
    return app, app, ""


def _mounted() -> tuple[Any, APIServerApp, str]:
    app, outer = create_app(controllers=()), FastAPI()
    outer.mount("/cluster", app)
    return outer, app, "/cluster"


WAYS: Final[Ways] = {"plain": _plain, "middleware": _with_middleware, "mounted": _mounted}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def running(server: str, way: str) -> Iterator[tuple[str, APIServerApp]]:
    """The base URL of a running application, and the application."""
    outer, app, prefix = WAYS[way]()
    with SERVERS[server](outer) as url:
        yield url + prefix, app


def _client(url: str, app: APIServerApp, *, http2: bool = False) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {app.token}"}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=TIME_OUT, http1=not http2, http2=http2)


async def _watches(client: httpx.AsyncClient) -> int:
    return int((await client.get("/fakeapiserver/state")).json()["watches"])


async def _watch_and_leave(client: httpx.AsyncClient, watching: httpx.AsyncClient) -> None:
    """Sees each event of a watch before the next write, leaves, and waits until the server has noticed."""
    before = await _watches(client)
    async with watching, watching.stream("GET", CONFIG_MAPS, params={"watch": "true"}) as watch:
        events = watch.aiter_lines()
        for name in "abc":
            await client.post(CONFIG_MAPS, json={"metadata": {"name": name}})
            event = json.loads(await anext(events))
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
        assert await _watches(client) == before + 1
    await _until_watches(client, before)


async def _until_watches(client: httpx.AsyncClient, count: int) -> None:
    """Waits until no more than so many watches are open."""
    while await _watches(client) > count:  # noqa: ASYNC110  only the server knows
        await asyncio.sleep(0.01)


def test_a_watch_streams_and_ends_with_its_client(running: tuple[str, APIServerApp]) -> None:
    async def run() -> None:
        watching = _client(*running)
        async with _client(*running) as client:
            await asyncio.wait_for(_watch_and_leave(client, watching), TIME_OUT)

    asyncio.run(run())


def test_a_watch_streams_over_http_2() -> None:
    app = create_app(controllers=())

    async def run(url: str) -> None:
        watching = _client(url, app, http2=True)
        async with _client(url, app, http2=True) as client:
            assert (await client.get("/healthz")).http_version == "HTTP/2"
            await asyncio.wait_for(_watch_and_leave(client, watching), TIME_OUT)

    with SERVERS["hypercorn"](app) as url:
        asyncio.run(run(url))


def test_a_watch_comes_as_messages_of_a_websocket(running: tuple[str, APIServerApp]) -> None:
    url, app = running

    async def run() -> None:
        async with _client(url, app) as client:
            before = await _watches(client)
            async with _websocket(url, app, f"{CONFIG_MAPS}?watch=true") as socket:
                await client.post(CONFIG_MAPS, json={"metadata": {"name": "a"}})
                assert json.loads(await socket.recv())["object"]["metadata"]["name"] == "a"
            await _until_watches(client, before)

    asyncio.run(asyncio.wait_for(run(), TIME_OUT))


def _websocket(url: str, app: APIServerApp, target: str, **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {app.token}"}
    return connect(url.replace("http", "ws", 1) + target, additional_headers=headers, origin=Origin(url), **options)


def test_a_refused_websocket_gets_the_answer_of_its_request(running: tuple[str, APIServerApp]) -> None:
    url, app = running

    async def run() -> None:
        with pytest.raises(InvalidStatus) as refused:
            await _websocket(url, app, "/api/v1/namespaces/default/pods/nothing/exec?command=id&stdout=true")
        answer = refused.value.response
        assert answer.status_code == 404
        assert json.loads(answer.body or b"")["reason"] == "NotFound"

    asyncio.run(asyncio.wait_for(run(), TIME_OUT))


@pytest.fixture
def pod(server: str) -> Iterator[tuple[str, APIServerApp]]:
    """An application with a running pod `p`, where `id` prints "me"."""
    app = create_app(nodes=1)
    with SERVERS[server](app) as url:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {app.token}"}, timeout=TIME_OUT) as client:
            client.post("/fakeapiserver/settle")
            client.post("/fakeapiserver/scripts", json={"name": "p", "exec": {"id": "me\n"}})
            spec = {"containers": [{"name": "c", "image": "i"}]}
            client.post("/api/v1/namespaces/default/pods", json={"metadata": {"name": "p"}, "spec": spec})
            client.post("/fakeapiserver/settle")
        yield url, app


def test_exec_over_a_websocket(pod: tuple[str, APIServerApp]) -> None:
    async def run() -> list[bytes]:
        async with _websocket(*pod, EXEC, subprotocols=["v5.channel.k8s.io"]) as socket:
            assert socket.subprotocol == "v5.channel.k8s.io"
            return [message async for message in socket]

    output, status = [m for m in asyncio.run(asyncio.wait_for(run(), TIME_OUT)) if len(m) > 1]
    assert output == b"\1me\n"
    assert json.loads(status[1:])["status"] == "Success"


def test_exec_over_spdy_says_what_to_do_instead(pod: tuple[str, APIServerApp]) -> None:
    url, app = pod
    headers = {
        "Authorization": f"Bearer {app.token}",
        "Connection": "Upgrade",
        "Upgrade": "SPDY/3.1",
        "X-Stream-Protocol-Version": "v4.channel.k8s.io",
    }
    answer = httpx.post(url + EXEC, headers=headers, timeout=TIME_OUT)
    assert answer.status_code == 501
    assert "use a client that speaks WebSockets, or run `fakeapiserver serve`" in answer.json()["message"]


def test_a_websocket_in_a_test_client() -> None:
    app = create_app(controllers=(), anonymous="admin")
    origin = {"Origin": "http://testserver"}
    with TestClient(app) as client:
        client.post(CONFIG_MAPS, json={"metadata": {"name": "a"}})
        with client.websocket_connect(f"{CONFIG_MAPS}?watch=true", headers=origin) as socket:
            assert socket.receive_json()["object"]["metadata"]["name"] == "a"


def test_uvicorn_finds_the_application_by_its_name() -> None:
    """`uvicorn fakeapiserver.asgi:app`; importing create_app makes no application."""
    code = (
        "import sys, uvicorn.importer as i; from fakeapiserver import asgi; assert 'app' not in vars(asgi);"
        "app = i.import_from_string('fakeapiserver.asgi:app'); assert app is asgi.app; print(type(app).__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert (done.stdout, done.stderr) == ("APIServerApp\n", "")
