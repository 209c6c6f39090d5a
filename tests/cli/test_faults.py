"""`fakeapiserver faults`, `serve --faults`, and the paths below /fakeapiserver/faults that they use."""

import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.control import remote
from fakeapiserver.cli.control.faults import main
from fakeapiserver.faults.readers import from_text
from fakeapiserver.faults.rule import fault

Run = Callable[..., int]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[httpx.Client]:
    trusted = ssl.create_default_context(cadata=cluster.ca.decode())
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with httpx.Client(base_url=cluster.url, verify=trusted, headers=headers) as client:
        yield client
    cluster.faults.clear()


@pytest.fixture
def run(cluster: Cluster, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command against the cluster, as if it were in the background."""
    facts = {"kubeconfig": cluster.kubeconfig}
    monkeypatch.setattr(remote.background.Server, "facts", lambda server: facts if server.name == "default" else None)
    return lambda *words: main(words)


# ----------------------------------------------------------------------- HTTP


def test_faults_over_http(client: httpx.Client) -> None:
    [added] = client.post("/fakeapiserver/faults", json={"verb": "list", "resource": "pods", "status": 503}).json()
    assert added == {
        "id": added["id"],
        "fault": {"verb": "list", "resource": "pods", "status": 503},
        "seen": 0,
        "hits": 0,
    }
    refused = client.get("/api/v1/pods")
    assert (refused.status_code, refused.headers["Fakeapiserver-Fault"]) == (503, str(added["id"]))
    path = f"/fakeapiserver/faults/{added['id']}"
    assert client.post(f"{path}/wait", json={"hits": 1}).json()["hits"] == 1
    late = client.post(f"{path}/wait", json={"hits": 2, "timeout": 0.01})
    assert (late.status_code, "struck 1 of 2 requests" in late.json()["message"]) == (504, True)
    assert client.get("/fakeapiserver/faults").json() == [client.get(path).json()]
    assert client.delete(path).status_code == 204
    assert client.get(path).json()["message"] == f"there is no fault {added['id']}"
    assert client.get("/api/v1/pods").status_code == 200


def test_several_faults_are_added_together_or_not_at_all(client: httpx.Client) -> None:
    faults = [{"status": 503, "verb": "list"}, {"status": 503, "vreb": "get"}]
    refused = client.post("/fakeapiserver/faults", json=faults)
    assert (refused.status_code, refused.json()["message"][:49]) == (
        422,
        "fault 2: a fault has no field 'vreb' (did you mea",
    )
    assert client.get("/fakeapiserver/faults").json() == []
    assert len(client.post("/fakeapiserver/faults", json=[faults[0], faults[0]]).json()) == 2
    assert client.delete("/fakeapiserver/faults").status_code == 204


def test_an_outage_over_http(cluster: Cluster, client: httpx.Client) -> None:
    begun = client.post("/fakeapiserver/outage", json={"duration": "200ms"})
    assert (begun.status_code, begun.json()) == (202, {"duration": "200ms"})
    until = time.monotonic() + 10
    refused = False
    while not refused and time.monotonic() < until:
        try:
            client.get("/readyz")
        except httpx.TransportError:
            refused = True
    assert refused
    _reachable(client)


def test_a_restart_over_http(cluster: Cluster, client: httpx.Client) -> None:
    assert client.post("/fakeapiserver/restart", json={"compact": True}).status_code == 202
    until = time.monotonic() + 10
    state = {"compacted": 0, "revision": 1}
    while state["compacted"] < state["revision"] and time.monotonic() < until:
        with suppress(httpx.TransportError):
            state = client.get("/fakeapiserver/state").json()
    assert state["compacted"] == state["revision"]


@pytest.mark.parametrize("duration", ["0s", "-1s", "soon", 3])
def test_an_outage_needs_a_duration(client: httpx.Client, duration: object) -> None:
    assert client.post("/fakeapiserver/outage", json={"duration": duration}).status_code in (400, 422)


def _reachable(client: httpx.Client) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            assert client.get("/readyz").status_code == 200
            return
    pytest.fail("the outage doesn't end")


@pytest.mark.parametrize("body", ["3", '"x"', "[1]", "{"])
def test_a_body_that_describes_no_fault(client: httpx.Client, body: str) -> None:
    refused = client.post("/fakeapiserver/faults", content=body)
    assert refused.status_code in (400, 422)
    assert refused.json()["kind"] == "Status"


# -------------------------------------------------------------------- command


def test_the_command(run: Run, client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("add", "verb=list", "resource=pods,secrets", "status=503", "times=1") == 0
    shown = capsys.readouterr().out
    number = shown.partition(":")[0]
    assert shown == f'{number}: verb=["list"] resource=["pods", "secrets"] status=503 times=1 (0 of 0 struck)\n'
    assert [client.get("/api/v1/pods").status_code for _ in range(2)] == [503, 200]
    assert run("wait", number, "--output=json") == 0
    assert json.loads(capsys.readouterr().out)[0]["hits"] == 1
    assert run() == 0
    assert "(1 of 2 struck)" in capsys.readouterr().out
    assert (run("remove", number), run("list"), run("clear")) == (0, 0, 0)
    assert capsys.readouterr().out == ""


def test_faults_of_a_file(run: Run, client: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("- {verb: list, resource: pods, status: 503}\n---\nverb: list\nresource: secrets\nstatus: 500\n")
    assert run("add", f"--faults={file}") == 0
    assert [client.get(f"/api/v1/{resource}").status_code for resource in ("pods", "secrets", "events")] == [
        503,
        500,
        200,
    ]


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["ad"], 2, "there is no faults ad: the actions are list, add, wait, remove, clear"),
        (["add"], 2, "this fault does nothing"),
        (["add", "status"], 2, "a field is written as name=value, not 'status'"),
        (["add", "status=409", "--faults=x"], 2, "unexpected argument 'status=409'"),
        (["add", "--faults=nowhere.yaml"], 2, "--faults: there is no file 'nowhere.yaml'"),
        (["add", "verb=gett", "status=409"], 2, "there is no verb 'gett' (did you mean 'get'?)"),
        (["remove"], 2, "faults remove needs the number of one fault"),
        (["remove", "x"], 2, "faults remove needs the number of one fault"),
        (["remove", "999"], 1, "there is no fault 999"),
        (["list", "x"], 2, "unexpected argument 'x'"),
        (
            ["list", "--server=other"],
            1,
            "no server 'other' runs: start it with fakeapiserver serve --background --name=other",
        ),
        (["list", "--servre=other"], 2, "unknown flag: --servre"),
    ],
)
def test_a_wrong_command(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str], status: int, sentence: str
) -> None:
    assert run(*words) == status
    error = capsys.readouterr().err
    assert error.startswith(f"fakeapiserver: {sentence}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("verb", "get,list", ("get", "list")),
        ("status", "409", 409),
        ("name", "7", ("7",)),
        ("message", "3", "3"),
        ("labels", "a=b,c=d", "a=b,c=d"),
        ("latency", "0.5,2s", (0.5, 2.0)),
        ("probability", "0.5", 0.5),
        ("hang", "true", True),
        ("stale", "true", 0),
    ],
)
def test_values_on_the_command_line(name: str, text: str, value: object) -> None:
    fields = {"message": {"status": 409}, "labels": {"status": 409}, "verb": {"status": 409}, "name": {"status": 409}}
    read = fault({**fields.get(name, {} if name != "probability" else {"status": 409}), name: from_text(name, text)})
    assert getattr(read.schedule if name == "probability" else read, name) == value


# ----------------------------------------------------------------------- serve


def test_serve_refuses_a_bad_file(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("- status: 409\n- status: 4\n")
    command = [sys.executable, "-m", "fakeapiserver", "serve", f"--faults={file}", "--controllers=none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert done.returncode == 2
    assert done.stderr.startswith(f"fakeapiserver: {file}: fault 2: status is one of 400, 401")
    assert done.stderr.count("\n") == 1


def test_the_command_ends_and_restarts_the_server(
    run: Run, client: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("outage", "50ms") == 0
    time.sleep(0.1)  # the outage has begun
    _reachable(client)
    assert run("restart", "--compact") == 0
    time.sleep(0.1)
    _reachable(client)
    for words in (["outage"], ["outage", "soon"], ["restart", "now"]):
        assert run(*words) in (1, 2)
    said = capsys.readouterr().err
    assert "faults outage needs a duration, such as 10s" in said
    assert "unexpected argument 'now'" in said
