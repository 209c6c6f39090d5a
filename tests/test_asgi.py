"""The FastAPI application as its user holds it: routes, dependencies, middleware, mounts, and the lifespan."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response, WebSocket
from fastapi.testclient import TestClient
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Route

from fakeapiserver.asgi import APIServerApp, create_app

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/{namespace}/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def admin(app: APIServerApp, **options: Any) -> TestClient:
    return TestClient(app, headers={"Authorization": f"Bearer {app.token}"}, **options)


@pytest.fixture
def app() -> APIServerApp:
    return create_app(controllers=())


@pytest.fixture
def client(app: APIServerApp) -> Iterator[TestClient]:
    with admin(app) as client:
        yield client


def test_the_application_is_an_api_server(client: TestClient) -> None:
    created = client.post(CONFIG_MAPS, json=config_map("a"))
    assert (created.status_code, created.json()["metadata"]["name"]) == (201, "a")
    assert client.get(f"{CONFIG_MAPS}/b").json()["reason"] == "NotFound"
    assert client.get("/version").json()["major"] == "1"
    assert client.get("/healthz").text == "ok"
    assert client.get("/nothing").text == "404 page not found\n"


def test_a_watch_sees_a_write(client: TestClient) -> None:
    client.post(CONFIG_MAPS, json=config_map("a"))
    answer = client.get(CONFIG_MAPS, params={"watch": "true", "timeoutSeconds": 1})
    assert [event["object"]["metadata"]["name"] for event in _events(answer)] == ["a"]


def _events(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines()]


# ------------------------------------------------------------------- who is the caller


@pytest.mark.parametrize(
    ("anonymous", "path", "status"),
    [
        ("user", "/healthz", 200),
        ("user", CONFIG_MAPS, 403),
        ("admin", CONFIG_MAPS, 200),
        ("admin", "/fakeapiserver/state", 200),
        ("refused", "/healthz", 401),
        ("refused", CONFIG_MAPS, 401),
    ],
)
def test_a_request_without_credentials(anonymous: Any, path: str, status: int) -> None:
    with TestClient(create_app(anonymous=anonymous, controllers=())) as client:
        assert client.get(path).status_code == status


def test_wrong_credentials_are_refused_even_where_none_are_needed() -> None:
    with TestClient(create_app(anonymous="admin", controllers=())) as client:
        assert client.get("/healthz", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_the_token_can_be_chosen() -> None:
    app = create_app(token="of-my-choice", controllers=())
    assert app.token == "of-my-choice"
    with admin(app) as client:
        assert client.get(CONFIG_MAPS).status_code == 200


# ------------------------------------------------------------------------------ routes


def test_each_operation_is_a_route(app: APIServerApp) -> None:
    routes = {
        (method, route.path) for route in app.routes if isinstance(route, Route) for method in route.methods or ()
    }
    expected = {
        ("GET", PODS),
        ("POST", PODS),
        ("PATCH", f"{PODS}/{{name}}"),
        ("PUT", f"{PODS}/{{name}}/status"),
        ("GET", f"{PODS}/{{name}}/proxy/{{path:path}}"),
        ("GET", "/api/v1/namespaces/{name}"),
        ("GET", "/apis/apps/v1/watch/deployments"),
        ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"),
    }
    assert expected <= routes


def test_routes_are_grouped_by_group_version(app: APIServerApp) -> None:
    versions = app.kubernetes.group_versions
    assert {"/api/v1", "/apis/apps/v1", "/apis/batch/v1"} <= versions.keys()
    assert all(route.path.startswith("/apis/apps/v1/") for route in versions["/apis/apps/v1"].routes)


def test_a_route_has_the_operations_name(app: APIServerApp) -> None:
    assert app.url_path_for("readCoreV1NamespacedPod", namespace="a", name="b") == "/api/v1/namespaces/a/pods/b"


@pytest.mark.parametrize(
    ("path", "route", "parameters"),
    [
        ("/api/v1/pods", "/api/v1/pods", {}),
        ("/api/v1/namespaces/a/pods/b", f"{PODS}/{{name}}", {"namespace": "a", "name": "b"}),
        ("/api/v1/namespaces/a", "/api/v1/namespaces/{name}", {"name": "a"}),
        ("/api/v1/namespaces/a/status", "/api/v1/namespaces/{name}/status", {"name": "a"}),
        ("/api/v1/watch/namespaces/a/pods", "/api/v1/watch/namespaces/{namespace}/pods", {"namespace": "a"}),
        (
            "/api/v1/namespaces/a/pods/b/proxy/c/d",
            f"{PODS}/{{name}}/proxy/{{path:path}}",
            {"namespace": "a", "name": "b", "path": "c/d"},
        ),
        ("/api/v1/nothing/a", "", {}),
    ],
)
def test_a_request_knows_its_route(path: str, route: str, parameters: dict[str, str]) -> None:
    seen = []

    async def note(request: Request) -> None:
        seen.append((request.scope["route"].path, request.path_params))

    app = create_app(controllers=(), dependencies=[Depends(note)])
    with admin(app) as client:
        client.get(path, params={"timeoutSeconds": 1})  # one of them is a watch
    assert seen == [(route, parameters)]


def test_a_definitions_routes_come_and_go(app: APIServerApp, client: TestClient) -> None:
    assert "/apis/example.com/v1" not in app.kubernetes.group_versions
    client.post(DEFINITIONS, json=WIDGETS)
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets" in {getattr(route, "path", "") for route in app.routes}
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets" in app.openapi()["paths"]
    client.delete(f"{DEFINITIONS}/widgets.example.com")
    assert "/apis/example.com/v1" not in app.kubernetes.group_versions


# --------------------------------------------------------------------------- documents


def test_the_document_has_the_operations_of_kubernetes_and_of_the_user(app: APIServerApp) -> None:
    app.get("/hello", tags=["mine"])(hello)
    with TestClient(app) as client:
        document = client.get("/openapi.json").json()
    assert document["paths"]["/hello"]["get"]["tags"] == ["mine"]
    assert document["paths"][f"{PODS}/{{name}}"]["get"]["tags"] == ["core_v1"]
    assert {"name": "apps_v1", "description": "apps/v1"} in document["tags"]
    assert "io.k8s.api.core.v1.Pod" in document["components"]["schemas"]


def test_every_reference_in_the_document_leads_somewhere(app: APIServerApp) -> None:
    document = app.openapi()
    wanted = set(_references(document))
    assert wanted <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def _references(value: Any) -> Iterator[str]:
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(item)
    if isinstance(value, dict) and isinstance(value.get("$ref"), str):
        yield value["$ref"]


def test_the_page_needs_no_other_server(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_the_paths_of_kubernetes_own_documents_stay_its_own(client: TestClient) -> None:
    assert "api/v1" in client.get("/openapi/v3").json()["paths"]
    assert client.get("/openapi/v2").json()["swagger"] == "2.0"


# ------------------------------------------------------------- what the user adds to it


async def hello() -> str:
    return "hello"


def test_further_routes(app: APIServerApp) -> None:
    app.get("/hello")(hello)
    app.get("/version")(hello)

    @app.websocket("/echo")
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text(await websocket.receive_text())
        await websocket.close()

    with TestClient(app) as client:
        assert client.get("/hello").json() == "hello"
        assert client.get("/version").json() == "hello"  # the user's routes go before the server's own paths
        assert client.post("/hello").status_code == 405
        with client.websocket_connect("/echo") as socket:
            socket.send_text("a")
            assert socket.receive_text() == "a"


async def _named(who: Annotated[str, Header()] = "") -> None:
    if not who:
        raise HTTPException(418, "say who you are")


@pytest.mark.parametrize("path", ["/hello", CONFIG_MAPS, "/version", "/fakeapiserver/state"])
def test_dependencies_come_before_every_route(path: str) -> None:
    app = create_app(controllers=(), dependencies=[Depends(_named)])
    app.get("/hello")(hello)
    with admin(app) as client:
        assert client.get(path).status_code == 418
        assert client.get(path, headers={"who": "me"}).status_code == 200
        app.dependency_overrides[_named] = lambda: None
        assert client.get(path).status_code == 200


def test_a_dependency_that_reads_the_body_leaves_it_to_the_server() -> None:
    bodies = []

    async def note(request: Request) -> None:
        bodies.append(await request.json())

    with admin(create_app(controllers=(), dependencies=[Depends(note)])) as client:
        assert client.post(CONFIG_MAPS, json=config_map("a")).status_code == 201
    assert bodies == [config_map("a")]


def test_middleware_sees_requests_and_answers(app: APIServerApp) -> None:
    class Marking:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def marked(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message["headers"], (b"x-mark", b"pure")]
                await send(message)

            await self.app(scope, receive, marked)

    async def mark(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers["x-other-mark"] = "base"
        return response

    app.add_middleware(Marking)
    app.add_middleware(BaseHTTPMiddleware, dispatch=mark)
    with admin(app) as client:
        answer = client.post(CONFIG_MAPS, json=config_map("a"))
        assert answer.status_code == 201
        assert (answer.headers["x-mark"], answer.headers["x-other-mark"]) == ("pure", "base")


# ----------------------------------------------------------------- mounts and lifespans


@pytest.mark.parametrize("path", ["/cluster", "/a/cluster"])
def test_the_application_mounts_into_another(app: APIServerApp, path: str) -> None:
    outer = FastAPI()
    outer.mount(path, app)
    with TestClient(outer, headers={"Authorization": f"Bearer {app.token}"}) as client:
        assert client.post(path + CONFIG_MAPS, json=config_map("a")).status_code == 201
        assert client.get(path + CONFIG_MAPS).json()["items"][0]["metadata"]["name"] == "a"
        assert client.get(f"{path}/healthz").text == "ok"
        assert client.get(f"{path}/fakeapiserver/state").status_code == 200
        assert client.get(f"{path}/docs").status_code == 200
        assert client.get(f"{path}/openapi.json").json()["servers"] == [{"url": path}]
        assert client.get(CONFIG_MAPS).status_code == 404


def test_an_outer_application_starts_and_stops_it(app: APIServerApp) -> None:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await app.start()
        yield
        await app.stop()

    outer = FastAPI(lifespan=lifespan)
    outer.mount("/cluster", app)
    with TestClient(outer) as client:
        assert app.state.cluster.runs
        assert client.get("/cluster/healthz").text == "ok"
    assert not app.state.cluster.runs


def test_the_users_lifespan_runs_within_the_servers() -> None:
    seen = []

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[dict[str, str]]:
        seen.append(("begin", app.state.cluster.runs))
        yield {"who": "me"}
        seen.append(("end", app.state.cluster.runs))

    app = create_app(controllers=(), lifespan=lifespan)

    @app.get("/who")
    async def who(request: Request) -> str:
        return str(request.state.who)

    with TestClient(app) as client:
        assert client.get("/who").json() == "me"
    assert seen == [("begin", True), ("end", True)]


def test_each_start_is_a_fresh_cluster(app: APIServerApp) -> None:
    for _ in range(2):
        with admin(app) as client:
            assert client.get(f"{CONFIG_MAPS}/a").status_code == 404
            assert client.post(CONFIG_MAPS, json=config_map("a")).status_code == 201


def test_two_applications_share_nothing() -> None:
    one, other = create_app(controllers=()), create_app(controllers=())
    with admin(one) as first, admin(other) as second:
        first.post(CONFIG_MAPS, json=config_map("a"))
        assert second.get(f"{CONFIG_MAPS}/a").status_code == 404
        assert first.get(CONFIG_MAPS, headers={"Authorization": f"Bearer {other.token}"}).status_code == 401


def test_the_first_request_starts_what_nothing_else_has_started(app: APIServerApp) -> None:
    async def run() -> None:
        transport = httpx.ASGITransport(app=app)
        headers = {"Authorization": f"Bearer {app.token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://cluster", headers=headers) as client:
            answers = await asyncio.gather(*(client.post(CONFIG_MAPS, json=config_map(name)) for name in "abc"))
            assert [answer.status_code for answer in answers] == [201, 201, 201]
            watch = client.get(CONFIG_MAPS, params={"watch": "true", "timeoutSeconds": 1})
            assert {event["object"]["metadata"]["name"] for event in _events(await watch)} == {"a", "b", "c"}
        await app.stop()

    asyncio.run(run())


def test_requests_from_another_event_loop_are_refused_with_the_reason(app: APIServerApp) -> None:
    client = TestClient(app)  # without `with`, each request has an event loop of its own
    client.get("/healthz")
    with pytest.raises(RuntimeError, match=r"another event loop.*with TestClient"):
        client.get("/healthz")


def test_controllers_and_nodes_run() -> None:
    app = create_app(nodes=1)
    with admin(app) as client:
        assert client.post("/fakeapiserver/settle").status_code == 200
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert client.post("/api/v1/namespaces/default/pods", json=pod).status_code == 201
        client.post("/fakeapiserver/settle")
        assert client.get("/api/v1/namespaces/default/pods/p").json()["status"]["phase"] == "Running"


def test_routes_of_the_user_drive_the_cluster() -> None:
    app = create_app(controllers=())

    @app.post("/tomorrow")
    async def tomorrow(request: Request) -> None:
        await request.app.state.cluster.clock.advance("24h")

    @app.post("/install")
    async def install(request: Request) -> None:
        await request.app.state.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", **config_map("mine")})

    with admin(app) as client:
        assert client.post("/install").status_code == 200
        assert client.get(f"{CONFIG_MAPS}/mine").status_code == 200
        before = client.get("/fakeapiserver/clock").json()["now"]
        assert client.post("/tomorrow").status_code == 200
        assert client.get("/fakeapiserver/clock").json()["now"][:10] > before[:10]


def test_a_cluster_without_a_port_says_how_to_get_a_kubeconfig(app: APIServerApp, client: TestClient) -> None:
    with pytest.raises(ValueError, match=r"no port of its own: use app\.kubeconfig\(url\)"):
        app.state.cluster.user("jane")
    config = app.kubeconfig("http://127.0.0.1:8000")
    assert config["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:8000"}
    assert config["users"][0]["user"] == {"token": app.token}


def test_the_cluster_can_listen_as_well() -> None:
    app = create_app(controllers=(), port=0)
    with admin(app) as client:
        cluster = app.state.cluster
        context = ssl.create_default_context(cadata=cluster.ca.decode())
        client.post(CONFIG_MAPS, json=config_map("a"))
        headers = {"Authorization": f"Bearer {cluster.token}"}
        assert httpx.get(f"{cluster.url}{CONFIG_MAPS}/a", headers=headers, verify=context).status_code == 200
        assert Path(cluster.kubeconfig).exists()


# ------------------------------------------------------------------------- wrong options


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"anonymous": "guest"}, ValueError, "anonymous: 'guest' is not one of user, admin, refused"),
        ({"token": "a b"}, ValueError, "token: a bearer token consists of"),
        ({"token": ""}, ValueError, "token: a bearer token consists of"),
        ({"nods": 3}, TypeError, "nods"),
        ({"kubernetes_version": "1.20"}, ValueError, "1.20"),
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        create_app(**options)
