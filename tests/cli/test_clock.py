"""`fakeapiserver clock`, and the path below /fakeapiserver that it uses."""

import json
from collections.abc import Callable, Iterator

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.control import remote
from fakeapiserver.cli.control.clock import main

Run = Callable[..., int]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command against the cluster, as if it were in the background."""
    facts = {"kubeconfig": cluster.kubeconfig}
    monkeypatch.setattr(remote.background.Server, "facts", lambda server: facts if server.name == "default" else None)
    return lambda *words: main(list(words))


def test_the_clock_is_stopped_moved_and_started(cluster: Cluster, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stop") == 0
    stopped_at = cluster.clock.now()
    assert run("advance", "1h") == 0
    assert cluster.clock.now() == pytest.approx(stopped_at + 3600)
    assert run("jump", "--", "-30m") == 0
    assert cluster.clock.now() == pytest.approx(stopped_at + 1800)
    assert all(line.endswith("Z (stopped)") for line in capsys.readouterr().out.splitlines())
    assert run("start", "--output=json") == 0
    assert json.loads(capsys.readouterr().out)["stopped"] is False
    assert run() == 0
    assert capsys.readouterr().out.endswith("Z\n")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["tick"], 2, "there is no clock tick: the actions are now, stop, start, advance, jump"),
        (["stop", "it"], 2, "unexpected argument 'it'"),
        (["advance"], 2, "clock advance needs a duration, such as 30s or 1h30m"),
        (["advance", "soon"], 2, "'soon' is not a duration, such as 30s or 1h30m"),
        (["advance", "--", "-5s"], 1, "time goes forward only, not by -5 s"),
        (["jump", "--", "-800000h"], 1, "a jump by -2.88e+09 s leaves the years 1970 to 9999"),
        (["now", "--server=other"], 1, "no server 'other' runs"),
    ],
)
def test_a_wrong_command_line(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    assert run(*words) == status
    assert said in capsys.readouterr().err
