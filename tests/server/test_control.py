"""The test control as a test in any language uses it: plain HTTP below /fakeapiserver/."""

import http.client
import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.nodes.behaviour import Behaviours, ContainerBehaviour, Output
from fakeapiserver.server.control.nodes import Script
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return Client(cluster)


def test_a_snapshot_brings_objects_definitions_and_allocations_back(client: Client) -> None:
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}})
    service = client.ask("POST", SERVICES, {"metadata": {"name": "kept"}, "spec": {"ports": [{"port": 80}]}})
    client.ask("POST", DEFINITIONS, WIDGETS)
    before = client.ask("GET", "/fakeapiserver/state")
    taken = client.ask("POST", "/fakeapiserver/snapshots")
    assert taken["revision"] >= before["revision"]  # the server renews its lease beside us

    client.ask("DELETE", f"{CONFIG_MAPS}/kept")
    client.ask("DELETE", f"{SERVICES}/kept")
    client.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "later"}})
    gadgets = json.loads(json.dumps(WIDGETS).replace("widget", "gadget").replace("Widget", "Gadget"))
    client.ask("POST", DEFINITIONS, gadgets)

    after = client.ask("POST", f"/fakeapiserver/snapshots/{taken['id']}/restore")
    assert after["revision"] > before["revision"]
    assert client.status("GET", f"{CONFIG_MAPS}/kept") == 200
    assert client.status("GET", f"{CONFIG_MAPS}/later") == 404
    assert client.status("GET", "/apis/example.com/v1/widgets") == 200
    assert client.status("GET", "/apis/example.com/v1/gadgets") == 404
    address = service["spec"]["clusterIP"]
    same = {"metadata": {"name": "other"}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}
    assert client.status("POST", SERVICES, same) == 422


def test_snapshots_are_listed_and_forgotten(client: Client) -> None:
    number = client.ask("POST", "/fakeapiserver/snapshots")["id"]
    assert number in [taken["id"] for taken in client.ask("GET", "/fakeapiserver/snapshots")]
    assert client.status("DELETE", f"/fakeapiserver/snapshots/{number}") == 204
    assert client.status("POST", f"/fakeapiserver/snapshots/{number}/restore") == 404


def test_forgotten_history_answers_410(client: Client) -> None:
    old = client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"]
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "newer"}})
    state = client.ask("POST", "/fakeapiserver/compact", {})
    assert state["compacted"] == state["revision"]
    assert client.status("GET", f"{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact") == 410


def test_a_lost_watch_ends(cluster: Cluster, client: Client) -> None:
    cluster.settle()  # controllers write ConfigMaps too
    with client.open("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={revision(client)}") as watch:
        assert client.ask("GET", "/fakeapiserver/state")["watches"] >= 1
        assert client.ask("POST", "/fakeapiserver/watches/lose")["watches"] >= 1
        assert watch.read() == b""


def revision(client: Client) -> str:
    return str(client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("method", "path", "body", "token", "status"),
    [
        ("GET", "/fakeapiserver/docs", None, None, 200),
        ("GET", "/fakeapiserver/openapi.json", None, None, 200),
        ("GET", "/fakeapiserver/docs", None, "", 200),  # where browsers log in
        ("POST", "/fakeapiserver/docs", None, "", 403),
        ("GET", "/fakeapiserver/openapi.json", None, "", 403),
        ("GET", "/fakeapiserver/state", None, "", 403),
        ("GET", "/fakeapiserver/state", None, "wrong", 401),
        ("GET", "/fakeapiserver/nothing", None, None, 404),
        ("DELETE", "/fakeapiserver/state", None, None, 405),
        ("POST", "/fakeapiserver/compact", {"revision": "x"}, None, 422),
        ("POST", "/fakeapiserver/compact", {"revision": 10**9}, None, 400),
        ("POST", "/fakeapiserver/snapshots/0/restore", None, None, 422),
    ],
)
def test_answers(client: Client, method: str, path: str, body: object, token: str | None, status: int) -> None:
    assert client.status(method, path, body, token=token) == status


def test_a_cluster_has_the_same_in_python() -> None:
    with Cluster() as cluster:
        client = Client(cluster)
        empty = cluster.snapshot()
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        cluster.restore(empty)
        assert client.status("GET", f"{CONFIG_MAPS}/a") == 404
        assert cluster.lose_watches() >= 1  # the definitions' own


def test_the_path_is_not_listed_among_upstreams(client: Client) -> None:
    assert not [path for path in client.ask("GET", "/")["paths"] if "fakeapiserver" in path]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "settle?timeout=20s", None, 200),
        ("POST", "settle?timeout=2m", None, 200),
        ("POST", "settle?timeout=20", None, 400),
        ("POST", "settle?timeout=0s", None, 400),
        ("POST", "settle?timeout=-1s", None, 400),
        ("POST", "settle?timeout=11m", None, 400),
        ("PUT", "controllers/deploymnt", {"mode": "run"}, 400),
        ("PUT", "controllers/node-route-controller", {"mode": "run"}, 400),
        ("PUT", "controllers/deployment", {"mode": "fly"}, 422),
        ("PUT", "controllers/deployment", {}, 422),
        ("PUT", "controllers/deployment", [], 422),
        ("PUT", "controllers/deployment", {"mode": "run", "more": 1}, 400),
        ("POST", "controllers/deployment/step", None, 400),  # it runs by itself
        ("PUT", "clock", {"advance": "-5s"}, 400),
        ("PUT", "clock", {"advance": "soon"}, 400),
        ("PUT", "clock", {"advance": "9999999999999h"}, 400),
        ("PUT", "clock", {"stopped": "perhaps"}, 422),
    ],
)
def test_what_can_not_be_asked_for_is_refused(
    client: Client, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    assert client.status(method, f"/fakeapiserver/{path}", body) == status


# ------------------------------------------------------------------ bodies and errors, as kubectl sends and shows them


def refusal(cluster: Cluster, method: str, path: str, body: bytes, **headers: str) -> Any:
    """The Status that a request gets; its body has no Content-Type unless `headers` name one."""
    url = cluster.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(url, context=ssl.create_default_context(cadata=cluster.ca.decode()))
    with closing(connection):
        connection.request(method, path, body, {"Authorization": f"Bearer {cluster.token}", **headers})
        answer = connection.getresponse()
        status = json.loads(answer.read())
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert status["code"] == answer.status
    return status


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason", "message"),
    [
        ("GET", "nothing", "", 404, "NotFound", "there is no /fakeapiserver/nothing: /fakeapiserver/docs lists the paths"),
        ("GET", "", "", 404, "NotFound", "there is no /fakeapiserver/: /fakeapiserver/docs lists the paths"),
        ("DELETE", "snapshots/99", "", 404, "NotFound", "there is no snapshot 99"),
        ("DELETE", "state", "", 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        ("POST", "settle?timeout=0s", "", 400, "BadRequest", "timeout is a duration of more than nothing and 10m at most, not 0s"),
        ("PUT", "clock", "{", 400, "BadRequest", "the body is not JSON: "),
        ("PUT", "clock", "", 422, "Invalid", "the request is invalid: body: Field required"),
        (
            "PUT",
            "clock",
            '{"advence": "3s"}',
            400,
            "BadRequest",
            'unknown field "advence": the fields of TimeChange are stopped, advance',
        ),
        (
            "POST",
            "scripts",
            '{"exec": {"id": {"out": "me"}}}',
            400,
            "BadRequest",
            'exec.id: unknown field "out": the fields of CommandOutput are stdout, stderr, exit_code',
        ),
        ("POST", "scripts", '{"attach": "sh"}', 400, "BadRequest", "attach: attach is a function, which only a test in Python can give"),
        (
            "PUT",
            "controllers/job-controller",
            '{"mode": "fly"}',
            422,
            "Invalid",
            "the request is invalid: mode: Input should be 'run', 'step' or 'off', found 'fly'",
        ),
        ("POST", "scripts", '{"exec": [1]}', 422, "Invalid", "the request is invalid: exec: Input should be a valid dictionary, found [1]"),
        ("POST", "scripts", '{"exit_codes": [1e999]}', 400, "BadRequest", "the body is not JSON: json: cannot unmarshal number 1e999"),
        ("POST", "scripts", '{"exit_codes": [NaN]}', 400, "BadRequest", "the body is not JSON: invalid character 'N'"),
        ("PUT", "clock", r'{"advance": "\ud800"}', 400, "BadRequest", ""),
        ("PUT", "clock", r'{"\ud800": "3s"}', 400, "BadRequest", 'unknown field "\ufffd": '),
        ("PUT", "controllers/job-controller", r'{"mode": "\udfff"}', 422, "Invalid", "the request is invalid: mode: "),
        ("POST", "scripts", '{"exit_codes": [0, "x"]}', 422, "Invalid", "the request is invalid: exit_codes[1]: "),
    ],
)  # fmt: skip
def test_errors_are_statuses(
    cluster: Cluster, method: str, path: str, body: str, code: int, reason: str, message: str
) -> None:
    status = refusal(cluster, method, f"/fakeapiserver/{path}", body.encode())
    assert (status["code"], status["reason"]) == (code, reason)
    assert status["message"].startswith(message)


def test_the_causes_of_an_invalid_body_name_its_fields(cluster: Cluster) -> None:
    status = refusal(cluster, "PUT", "/fakeapiserver/controllers/job-controller", b'{"mode": "fly"}')
    (cause,) = status["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueNotSupported", "mode")


def test_the_document_says_that_errors_are_statuses(client: Client) -> None:
    document = client.ask("GET", "/fakeapiserver/openapi.json")
    operation = document["paths"]["/fakeapiserver/scripts"]["post"]
    assert operation["responses"].keys() == {"201", "4XX"}
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_bodies_of_other_media_types_are_refused(cluster: Cluster) -> None:
    status = refusal(cluster, "PUT", "/fakeapiserver/clock", b"stopped: true", **{"Content-Type": "application/yaml"})
    assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")
    assert "the body of the request was application/yaml" in status["message"]


KUBECTL = shutil.which("kubectl")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize(
    ("command", "path", "body", "code", "output"),
    [
        ("create", "compact", "{}", 0, '"compacted":'),
        ("create", "compact", '{"revison": 1}', 1, 'Error from server (BadRequest): unknown field "revison"'),
        ("create", "compact", '{"revision": 0}', 1, "revision: Input should be greater than or equal to 1, found 0"),
        ("get", "state", None, 0, '"revision":'),
        ("get", "stat", None, 1, "Error from server (NotFound): there is no /fakeapiserver/stat"),
        ("replace", "clock", '{"stopped": "perhaps"}', 1, "stopped: Input should be a valid boolean"),
    ],
)
def test_kubectl_drives_the_control(
    cluster: Cluster, command: str, path: str, body: str | None, code: int, output: str
) -> None:
    call = [str(KUBECTL), f"--kubeconfig={cluster.kubeconfig}", command, "--raw", f"/fakeapiserver/{path}"]
    call += ["-f", "-"] if body is not None else []
    done = subprocess.run(call, input=body or "", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert output in done.stdout + done.stderr


# --------------------------------------------------------------------------- scripts


def scripted(**script: Any) -> ContainerBehaviour:
    """Returns the behaviour of a container for which this script was set in Python."""
    behaviours = Behaviours()
    behaviours.add(**script)
    pod = {"metadata": {"namespace": "n", "name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    return behaviours.of(pod, "c", main=True)


@pytest.mark.parametrize(
    ("field", "value", "behaviour"),
    [
        ("exec", "0\n", {"": Output("0\n")}),
        ("exec", {"id -u": "0\n"}, {"id -u": Output("0\n")}),
        ("exec", {"": {"stderr": "no", "exit_code": 126}}, {"": Output("", "no", 126)}),
        ("ports", {80: "hello"}, {80: b"hello"}),
        ("ports", {80: "127.0.0.1:15432", 81: "[::1]:80", 82: ":80"}, {80: "127.0.0.1:15432", 81: "[::1]:80", 82: ":80"}),
        ("ports", {80: "HTTP/1.1 200 OK: fine"}, {80: b"HTTP/1.1 200 OK: fine"}),
        ("ports", {0: {"answer": "a:80"}}, {0: b"a:80"}),
        ("log", [[0, "a"], [1.5, "b"]], [(0, "a"), (1.5, "b")]),
        ("ready_after", None, None),
    ],
)  # fmt: skip
def test_a_script_has_one_shape_in_python_and_over_http(field: str, value: Any, behaviour: Any) -> None:
    in_python = getattr(scripted(**{field: value}), field)
    over_http = getattr(scripted(**Script.model_validate_json(json.dumps({field: value})).changes()), field)
    as_pairs = [tuple(line) for line in in_python] if field == "log" else in_python
    assert as_pairs == over_http == behaviour


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"exec": {"id": 3}}, "exec: 3 is neither a function, a text nor an Output"),
        ({"exec": {"id": {"out": "me"}}}, "is neither a function, a text nor an Output"),
        ({"ports": {80: 3}}, 'ports: 3 is neither "HOST:PORT", an answer nor a function'),
    ],
)
def test_other_shapes_are_refused_in_python(script: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        scripted(**script)
