"""`run --etcd` and `serve --etcd`: an etcd for the time of a command."""

import sys

import pytest

from fakeapiserver import cli
from fakeapiserver.cluster.processes.etcd_process import VARIABLE, NoEtcd, find_etcd

ASK = """
import os, subprocess, yaml
servers = [line for line in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines() if "etcd" in line]
assert any("--unsafe-no-fsync" in line for line in servers), servers
assert yaml.safe_load(open(os.environ["KUBECONFIG"]))["clusters"]
"""


def test_run_keeps_the_state_in_an_etcd_that_goes_with_it(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        find_etcd()
    except NoEtcd as missing:
        pytest.skip(str(missing))
    assert cli.main(["run", "--etcd", "--controllers=", "--", sys.executable, "-c", ASK]) == 0


@pytest.mark.parametrize(
    ("flags", "status", "complaint"),
    [
        (
            ["--etcd", "--etcd-servers=http://127.0.0.1:1"],
            2,
            "--etcd starts an etcd of its own: leave --etcd-servers away",
        ),
        (["--etcd-binary=/no/etcd"], 1, "there is no program '/no/etcd'"),
        (["--etcd", "--data-dir=data"], 2, "--etcd keeps the state in etcd: leave --data-dir away, or --etcd"),
    ],
)
def test_what_contradicts_it_is_one_sentence(
    flags: list[str],
    status: int,
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert cli.main(["run", *flags, "--", "true"]) == status
    assert complaint in capsys.readouterr().err
