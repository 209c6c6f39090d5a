"""`fakeapiserver requests`, and the path below /fakeapiserver that it uses."""

import json
from collections.abc import Callable, Iterator

import pytest
import yaml

from fakeapiserver import Cluster
from fakeapiserver.cli.control import remote
from fakeapiserver.cli.control.requests import main
from tests.plain_client import Client

Run = Callable[..., int]
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        client = Client(cluster)
        client.status("POST", MAPS, {"metadata": {"name": "a"}})
        client.status("GET", f"{MAPS}/none")
        yield cluster


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command against the cluster, as if it were in the background."""
    facts = {"kubeconfig": cluster.kubeconfig}
    monkeypatch.setattr(remote.background.Server, "facts", lambda server: facts if server.name == "default" else None)
    return lambda *words: main(list(words))


def test_requests_are_shown(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("create", "configmaps") == 0
    [line] = capsys.readouterr().out.splitlines()
    assert f"create {MAPS} 201" in line
    assert run("--output=transcript", "*", "configmaps") == 0
    assert [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "create configmaps default/a -> 201",
        "get configmaps default/none -> 404 NotFound",
    ]
    assert run("get", "configmaps", "--output", "json") == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["name"], row["status"]) == ("none", 404)
    assert run("--since", str(row["seq"]), "*", "configmaps") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("output", "read", "said"),
    [
        ("har", json.loads, "HTTP/1.1"),
        ("audit", lambda text: [*map(json.loads, text.splitlines())], "ResponseComplete"),
        ("roles", lambda text: [*yaml.safe_load_all(text)], "configmaps"),
    ],
)
def test_requests_are_written_as_documents(
    output: str, read: Callable[[str], object], said: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"--output={output}", "--user-agent=Python-urllib*", "*", "configmaps") == 0
    text = capsys.readouterr().out
    assert said in text
    assert read(text)
    assert run(f"--output={output}", "--user-agent=other") == 0
    assert said not in capsys.readouterr().out.replace('"log"', "")


def test_new_requests_are_followed(
    cluster: Cluster, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait in vain is repeated, until the user interrupts the command."""
    asked: list[str] = []
    ask = remote.ask

    def interrupted(server: str, method: str, path: str, body: object = None) -> object:
        asked.append(path)
        if len(asked) == 2:
            raise remote.RemoteTimeout("no request")
        if len(asked) == 4:
            raise KeyboardInterrupt
        if len(asked) == 3:
            Client(cluster).status("DELETE", f"{MAPS}/followed")
        return ask(server, method, path, body)

    monkeypatch.setattr(remote, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("delete", "configmaps", "--follow")
    assert f"delete {MAPS}/followed 404" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["pods"], 2, "a query is a verb, a resource"),
        (["updat", "leases"], 2, "did you mean update?"),
        (["--output=xml"], 2, "xml"),
        (["--output=har", "--follow"], 2, "a whole document"),
        (["--since=x"], 2, "x"),
        (["--server=other"], 1, "no server 'other' runs"),
    ],
)
def test_a_wrong_command_line(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    assert run(*words) == status
    assert said in capsys.readouterr().err


def test_a_server_without_a_log_says_how_to_keep_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(controllers=(), kept_requests=0) as cluster:
        facts = {"kubeconfig": cluster.kubeconfig}
        monkeypatch.setattr(remote.background.Server, "facts", lambda _: facts)
        assert main([]) == 1
    assert "--kept-requests=1000" in capsys.readouterr().err
