"""Systems that lack what POSIX has: simulated by taking it away from the interpreter before the package is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Windows has no fcntl, no users' numbers, no forks, no process groups, no select.poll, and no event loop that handles signals. Its files
# are in the encoding of the region unless the program names one.
WINDOWS = """
import asyncio, fcntl, os, select, signal, ssl, subprocess, sys, types, warnings, uvicorn, fastapi, cryptography.x509, websockets.server
for name in ("fcntl", "grp", "pwd", "resource", "uvloop"):
    sys.modules[name] = None
for module, names in (
    (os, "getuid geteuid getgid getegid fork killpg setsid O_NOFOLLOW O_CLOEXEC O_DIRECTORY chown"),
    (select, "poll epoll"),
    (signal, "SIGPIPE SIGHUP SIGKILL SIGUSR1 SIGSTOP SIGCONT"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
def refuse(*_):
    raise NotImplementedError
asyncio.SelectorEventLoop.add_signal_handler = asyncio.SelectorEventLoop.remove_signal_handler = refuse
os.symlink = refuse
def locking(descriptor, mode, count, flock=fcntl.flock):
    try:
        flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(*error.args)
asyncio.new_event_loop().close()  # from 3.14 on asyncio looks at sys.platform when it makes the first one
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
sys.platform = "win32"
warnings.filterwarnings("error", category=EncodingWarning, module="fakeapiserver")
"""
SERVE = "from fakeapiserver.cli import main; sys.exit(main())"


def started(program: str, *arguments: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-X", "warn_default_encoding", "-c", WINDOWS + program, *arguments]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )


def test_serve_runs_until_its_standard_input_is_closed() -> None:
    with started(SERVE, "serve", "--output=json", "--stop-with-stdin", "--nodes=1") as process:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline() or "null")
        assert facts is not None, process.communicate()[1]
        assert Path(facts["kubeconfig"]).exists()
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert not Path(facts["kubeconfig"]).parent.exists()


def test_serve_ends_by_a_signal() -> None:
    with started(SERVE, "serve", "--output=json") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_cluster(tmp_path: Path) -> None:
    program = """
from fakeapiserver import Cluster
with Cluster(nodes=1) as cluster:
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
                   "spec": {"containers": [{"name": "web", "image": "nginx"}]}})
    cluster.wait("pod/web", "Ready")
    cluster.write_kubeconfig(sys.argv[1] + "/kubeconfig")
    cluster.export(sys.argv[1] + "/manifests")
    print(cluster.get("pod/web")["status"]["phase"])
"""
    with started(program, str(tmp_path)) as process:
        output, errors = process.communicate(timeout=60)
    assert (output, errors, process.returncode) == ("Running\n", "", 0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (f"sys.argv[1:] = ['serve', '--background']\n{SERVE}", "--background needs a POSIX system"),
        (
            "from fakeapiserver import Cluster\n"
            "with Cluster(controllers=()) as cluster, cluster.operator_process('true'): pass",
            "on POSIX systems only",
        ),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_sentence(program: str, message: str) -> None:
    with started(program) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert message in errors.splitlines()[-1]
