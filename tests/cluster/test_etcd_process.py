"""An etcd as a process: which program is taken, what a restart keeps, and that nothing is left of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess, NoEtcd, find_etcd, version_of


def program(path: Path, output: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ("etcdctl version: 3.6.8", "is not an etcd: it doesn't report a version"),
        ("etcd Version: 3.6.8\nfakeapiserver's stand-in: it keeps nothing".replace("'", "'\\''"), "is the stand-in"),
    ],
)
def test_programs_that_are_no_etcd(tmp_path: Path, output: str, complaint: str) -> None:
    with pytest.raises(NoEtcd, match=complaint):
        find_etcd(str(program(tmp_path / "etcd", output)))


def test_the_program_is_named_or_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKEAPISERVER_ETCD", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoEtcd, match=r"there is no etcd on the PATH: .*FAKEAPISERVER_ETCD"):
        find_etcd()
    with pytest.raises(NoEtcd, match="there is no program '/no/etcd'"):
        find_etcd("/no/etcd")
    folders = {name: tmp_path / name for name in ("path", "variable", "option")}
    for name, folder in folders.items():
        folder.mkdir()
        program(folder / "etcd", f"etcd Version: {name}")
    monkeypatch.setenv("PATH", str(folders["path"]))
    assert version_of(find_etcd()) == "path"
    monkeypatch.setenv("FAKEAPISERVER_ETCD", str(folders["variable"] / "etcd"))
    assert version_of(find_etcd()) == "variable"
    assert version_of(find_etcd(str(folders["option"] / "etcd"))) == "option"


def test_an_etcd_that_does_not_start_shows_its_last_lines(tmp_path: Path) -> None:
    etcd = EtcdProcess(program(tmp_path / "etcd", "no space on the moon"))
    with pytest.raises(NoEtcd, match="does not start; its last lines: no space on the moon"), etcd:
        pass


@pytest.fixture
def binary() -> Path:
    try:
        return find_etcd()
    except NoEtcd as error:
        pytest.skip(str(error))


def test_a_restart_keeps_the_address_and_the_data(binary: Path, tmp_path: Path) -> None:
    with EtcdProcess(binary, data_dir=tmp_path / "data", fsync=False) as etcd:
        url, group = etcd.url, etcd.group
        etcd.kill()
        assert not etcd.is_running
        etcd.start()
        assert (etcd.url, etcd.is_healthy()) == (url, True)
        assert etcd.group != group
    assert (tmp_path / "data/member/snap/db").exists()


def test_nothing_is_left_when_the_parent_is_killed(binary: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
etcd = EtcdProcess(Path({str(binary)!r}), fsync=False)
etcd.start()
print(etcd.group, flush=True)
time.sleep(1000)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    group = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while is_alive(group):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
