"""Looking into simulated pods: logs, commands, terminals and ports, over WebSockets and SPDY."""

import asyncio
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig, streams, synchronous
from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.nodes.behaviour import Call, Output
from fakeapiserver.transport.spdy import Session, Stream


def shell(call: Call) -> int | str | Output:
    """A program of many names."""
    match call.command[0]:
        case "cat":
            while data := call.stdin.read(1000):
                call.stdout.write(data)
            return 0
        case "fail":
            call.stdout.write("so far\n")
            call.stderr.write("no further\n")
            return 3
        case "where":
            return f"{call.namespace} {call.pod} {call.container} {call.tty}"
        case "exit":
            raise SystemExit(4)
        case "break":
            raise LookupError("not there")
    return Output("out", "err", 1)


def shouting(connection: socket.socket) -> None:
    while data := connection.recv(1000):
        connection.sendall(data.upper())


async def reversing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.readline()).strip()[::-1])
    await writer.drain()


def ticks(restarts: int) -> Iterable[tuple[float, str]]:
    return ((second, f"{restarts}: {second}") for second in itertools.count())


def pod(name: str, *containers: str, **spec: Any) -> Mapping[str, Any]:
    made = [{"name": container, "image": "x"} for container in containers or ("main",)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "node-1", "containers": made, **spec},
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2) as running, synchronous.connect(running.kubeconfig) as client:
        running.clock.stop()
        script = running.nodes.script
        script(name="web", log="one\ntwo\nthree\n", exec=shell, ports={80: shouting, 81: reversing, 82: b"fixed"})
        script(name="tick", log=ticks, exec={"date -u": Output("today\n"), "": Output("", "what?", 127)})
        script(name="crash", log=ticks, runs_for=2.0, exit_codes=(1,))
        script(name="broken", pull_error="there is no such image")
        for made in (
            pod("web"),
            pod("tick"),
            pod("crash"),
            pod("broken"),
            *(pod(name, "first", "second") for name in ("two", "scripted")),
            pod("unbound", nodeName="", schedulingGates=[{"name": "example.com/later"}]),
            pod("elsewhere", nodeName="node-2"),
        ):
            client.resource("pods", "default").create(dict(made))
        running.settle()
        running.nodes.stop("node-2")
        running.clock.advance("5s")
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[synchronous.Client]:
    with synchronous.connect(cluster.kubeconfig) as connected:
        yield connected


# -------------------------------------------------------------------------- logs


@pytest.mark.parametrize(
    ("name", "options", "printed"),
    [
        ("web", {}, "one\ntwo\nthree\n"),
        ("web", {"tail_lines": 2}, "two\nthree\n"),
        ("web", {"tail_lines": 0}, ""),
        ("web", {"limit_bytes": 5}, "one\nt"),
        ("web", {"tail_lines": 1, "limit_bytes": 3}, "thr"),
        ("web", {"container": "main"}, "one\ntwo\nthree\n"),
        ("two", {"container": "second"}, ""),
        ("crash", {}, "1: 0\n1: 1\n1: 2\n"),
        ("crash", {"previous": True}, "1: 0\n1: 1\n1: 2\n"),
        ("unbound", {}, ""),
    ],
)
def test_logs(client: synchronous.Client, name: str, options: Any, printed: str) -> None:
    assert b"".join(client.logs(name, **options)).decode() == printed


def test_old_lines_are_left_out(client: synchronous.Client) -> None:
    printed = b"".join(client.logs("tick")).splitlines()
    recent = b"".join(client.logs("tick", since_seconds=2)).splitlines()
    assert recent == printed[-len(recent) :]
    assert 2 <= len(recent) <= 3  # one may be exactly two seconds old


def test_lines_have_times_on_demand(client: synchronous.Client) -> None:
    first, second = b"".join(client.logs("tick", timestamps=True, limit_bytes=72)).decode().splitlines()
    begin, _, text = first.partition("Z ")
    assert (len(begin.partition(".")[2]), text) == (9, "0: 0")
    assert second[:-1] > first[:-1]


@pytest.mark.parametrize(
    ("name", "options", "code", "message"),
    [
        ("web", {"container": "no"}, 400, "container no is not valid for pod web"),
        (
            "web",
            {"previous": True},
            400,
            'previous terminated container "main" in pod "web" not found',
        ),
        ("broken", {}, 400, 'container "main" in pod "broken" is waiting to start: trying and failing to pull image'),
        ("two", {}, 400, "a container name must be specified for pod two, choose one of: [first second]"),
        (
            "elsewhere",
            {"tail_lines": 3},
            500,
            'Get "https://node-2:10250/containerLogs/default/elsewhere/main?tailLines=3": '
            "dial tcp 172.18.0.4:10250: connect: no route to host",
        ),
    ],
)
def test_logs_that_are_not_there(client: synchronous.Client, name: str, options: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        b"".join(client.logs(name, **options))
    assert (refused.value.code, str(refused.value)) == (code, message)


def test_a_log_is_followed_until_the_container_ends() -> None:
    """In a cluster of its own: it turns the clock, and what crashes in the others' would be started again."""
    with Cluster(nodes=1) as cluster, synchronous.connect(cluster.kubeconfig) as client:
        cluster.clock.stop()
        cluster.nodes.script(name="short", log=[(0, "begin"), (2, "middle"), (9, "never")], runs_for=5.0)
        client.resource("pods", "default").create(dict(pod("short", restartPolicy="Never")))
        cluster.settle()
        pieces = client.logs("short", follow=True)
        assert next(pieces) == b"begin\n"
        cluster.clock.advance("3s")
        assert next(pieces) == b"middle\n"
        cluster.clock.advance("3s")
        assert list(pieces) == []
        assert b"".join(client.logs("short", follow=True)) == b"begin\nmiddle\n"


def test_a_follower_of_logs_learns_that_the_pod_is_gone(cluster: Cluster, client: synchronous.Client) -> None:
    client.resource("pods", "default").create(dict(pod("leaving")))
    cluster.nodes.script(name="leaving", log="here\n")
    cluster.settle()
    pieces = client.logs("leaving", follow=True)
    assert next(pieces) == b"here\n"
    client.resource("pods", "default").delete("leaving", grace_period_seconds=0)
    assert list(pieces) == []


# ---------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("name", "command", "stdin", "completed"),
    [
        ("web", ["cat"], b"hello " * 50_000, (0, b"hello " * 50_000, b"")),
        ("web", ["cat"], None, (0, b"", b"")),
        ("web", ["fail"], None, (3, b"so far\n", b"no further\n")),
        ("web", ["where"], None, (0, b"default web main False", b"")),
        ("web", ["exit"], None, (4, b"", b"")),
        ("web", ["break"], None, (1, b"", b"LookupError: not there\n")),
        ("web", ["else"], b"unread", (1, b"out", b"err")),
        ("tick", ["date", "-u"], None, (0, b"today\n", b"")),
        ("tick", ["date"], None, (127, b"", b"what?")),
    ],
)
def test_commands(
    client: synchronous.Client, name: str, command: list[str], stdin: bytes | None, completed: Any
) -> None:
    assert client.run(name, command, stdin=stdin) == streams.Completed(*completed)


@pytest.mark.parametrize(
    ("name", "container", "message"),
    [
        ("broken", "", 'container not found ("main")'),
        ("elsewhere", "", "error dialing backend: dial tcp 172.18.0.4:10250: connect: no route to host"),
        ("unbound", "", "pod unbound does not have a host assigned"),
    ],
)
def test_commands_that_cannot_run(client: synchronous.Client, name: str, container: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        client.run(name, ["ls"], container=container)
    assert message in json.dumps(refused.value.status, ensure_ascii=False).replace('\\"', '"')


@pytest.mark.parametrize(
    ("command", "completed"),
    [
        (["true"], (0, b"", b"")),
        (["echo", "hi"], (0, b"hi\n", b"")),
        (["sh", "-c", "echo so far; echo no >&2; exit 3"], (3, b"so far\n", b"no\n")),
        (["sh", "-c", "cat; echo $HOSTNAME"], (0, b"given\xfftwo\n", b"")),
        (["cat", "/etc/passwd"], (1, b"", b"cat: can't open '/etc/passwd': No such file or directory\n")),
    ],
)
def test_commands_that_no_script_names_run_in_a_shell(
    client: synchronous.Client, command: list[str], completed: Any
) -> None:
    assert client.run("two", command, container="second", stdin=b"given\xff") == streams.Completed(*completed)


@pytest.mark.parametrize(
    ("command", "exit_code", "what"),
    [
        (["tar", "cf", "-", "/tmp"], 127, b"what tar does"),
        (["curl", "http://web"], 127, b"what curl does"),
        (["sh", "-c", "echo a | sort"], 126, b"what sh ('|') does"),
    ],
)
def test_a_command_that_is_not_followed_says_how_to_script_it(
    client: synchronous.Client, command: list[str], exit_code: int, what: bytes
) -> None:
    found = client.run("two", command, container="second")
    assert found.exit_code == exit_code
    assert what in found.stderr
    assert found.stderr.count(b"\n") == 1
    assert b"cluster.nodes.script(exec=...)" in found.stderr


def test_a_command_takes_an_upgrade(client: synchronous.Client) -> None:
    with pytest.raises(StatusError, match="Upgrade request required"):
        client.request("POST", "/api/v1/namespaces/default/pods/web/exec", params={"command": "ls", "stdout": "true"})


def test_a_terminal_has_a_size(cluster: Cluster) -> None:
    told = threading.Event()

    def vi(call: Call) -> str:
        call.stdin.readline()
        told.set()
        return f"{call.tty} {call.size()}"

    cluster.nodes.script(name="two", container="first", exec=vi)

    async def work() -> bytes:
        async with (
            RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest,
            streams.exec_stream(rest, "two", ["vi"], container="first", stdin=True, tty=True) as process,
        ):
            await process.resize(80, 24)
            await process.write(b"go\n")
            return b"".join([output.data async for output in process.output()])

    assert asyncio.run(work()) == b"True (80, 24)"


def test_who_attaches_sees_the_log_and_what_is_typed(cluster: Cluster) -> None:
    async def work() -> list[bytes]:
        async with (
            RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest,
            streams.attach_stream(rest, "web", stdin=True) as process,
        ):
            output = process.output()
            log = (await anext(output)).data
            await process.write(b"typed")
            return [log, (await anext(output)).data]

    assert asyncio.run(work()) == [b"one\ntwo\nthree\n", b"typed"]


def test_who_attaches_to_a_command_sees_what_it_prints_from_then_on() -> None:
    async def work(cluster: Cluster) -> list[bytes]:
        async with (
            RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest,
            streams.attach_stream(rest, "talks", container="main") as process,
        ):
            await asyncio.to_thread(cluster.clock.advance, "6s")
            return [output.data async for output in process.output()]

    with Cluster(nodes=1) as cluster, synchronous.connect(cluster.kubeconfig) as client:
        cluster.clock.stop()
        command = ["sh", "-c", "echo before; sleep 5; echo after"]
        containers = [{"name": "main", "image": "busybox", "command": command}]
        made = {**pod("talks", restartPolicy="Never")}
        made["spec"] = {**made["spec"], "containers": containers}
        client.resource("pods", "default").create(made)
        cluster.settle()
        assert asyncio.run(work(cluster)) == [b"after\n"]
        assert b"".join(client.logs("talks")) == b"before\nafter\n"


@pytest.mark.parametrize(
    ("command", "said", "output", "exit_code"),
    [
        (["cat"], b"hello\n", "hello\n", 0),
        (["sh"], b"X=3\necho $X\nexit $X\n", "3\n", 3),
        (["sh", "-c", "echo name?; cat; false"], b"me\n", "name?\nme\n", 1),
    ],
)
def test_a_command_that_reads_goes_on_with_what_a_client_sends_and_ends_its_container(
    cluster: Cluster, client: synchronous.Client, command: list[str], said: bytes, output: str, exit_code: int
) -> None:
    name = f"reads-{exit_code}"
    containers = [{"name": "main", "image": "busybox", "command": command, "stdin": True, "stdinOnce": True}]
    spec = {"nodeName": "node-1", "containers": containers, "restartPolicy": "Never"}
    pods = client.resource("pods", "default")
    pods.create({"metadata": {"name": name}, "spec": spec})
    cluster.settle()
    assert pods.get(name)["status"]["phase"] == "Running"

    async def work() -> None:
        async with (
            RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest,
            streams.attach_stream(rest, name, stdin=True) as process,
        ):
            await process.write(said)
            with suppress(TransportError):  # sh may have ended by then
                await process.close_stdin()
            async for _ in process.output():
                pass

    asyncio.run(work())
    cluster.settle()
    [status] = pods.get(name)["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == exit_code
    assert b"".join(client.logs(name)).decode() == output


def test_a_shell_in_a_terminal_shows_a_prompt_and_what_is_typed(cluster: Cluster) -> None:
    async def work() -> bytes:
        async with (
            RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest,
            streams.exec_stream(rest, "two", ["sh"], container="second", stdin=True, tty=True) as process,
        ):
            await process.write(b"echo hj\x7fi\r" + b"nonsense\x03" + b"exit\r")
            return b"".join([output.data async for output in process.output()])

    shown = asyncio.run(work()).decode()
    assert shown == "/ # echo hj\b \bi\r\nhi\r\n/ # nonsense^C\r\n/ # exit\r\n"


def test_functions_run_in_threads(cluster: Cluster) -> None:
    async def asynchronous(call: Call) -> int:
        return 0

    with pytest.raises(ValueError, match="they run in a thread of their own"):
        cluster.nodes.script(exec=asynchronous)


# ------------------------------------------------------------------------- ports


@pytest.mark.parametrize(
    ("port", "said", "answer"),
    [(80, b"hello", b"HELLO"), (81, b"abc\n", b"cba"), (82, b"anything", b"fixed")],
)
def test_ports(client: synchronous.Client, port: int, said: bytes, answer: bytes) -> None:
    with client.port_forward("web", port) as local, socket.create_connection(("127.0.0.1", local), 60) as connection:
        connection.sendall(said)
        assert connection.recv(100) == answer


def test_a_port_leads_elsewhere(cluster: Cluster, client: synchronous.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster.nodes.script(name="two", ports={0: f"127.0.0.1:{server.getsockname()[1]}"})
        with client.port_forward("two", 5432) as local, socket.create_connection(("127.0.0.1", local), 60) as near:
            far, _ = server.accept()
            with far:
                near.sendall(b"ping")
                assert far.recv(10) == b"ping"


# -------------------------------------------------------------------------- SPDY


class _Spdy:
    """A client as kubectl was before it spoke WebSockets."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def connect(self, path: str, *protocols: str) -> tuple[Session, str]:
        context = ssl.create_default_context(cadata=self._cluster.ca.decode())
        port = int(self._cluster.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        lines = [
            f"POST {path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self._cluster.token}",
            "Connection: Upgrade",
            "Upgrade: SPDY/3.1",
            "Content-Length: 0",
            *(f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        return Session(lambda: reader.read(1000), send, client=True), head


async def everything(stream: Stream) -> bytes:
    pieces = []
    while data := await stream.read():
        pieces.append(data)
    return b"".join(pieces)


def test_commands_over_spdy(cluster: Cluster) -> None:
    async def work() -> tuple[bytes, Any]:
        path = "/api/v1/namespaces/default/pods/web/exec?command=cat&stdin=1&stdout=1"
        session, head = await _Spdy(cluster).connect(path, "v5.channel.k8s.io", "v4.channel.k8s.io")
        assert head.startswith("HTTP/1.1 101 ")
        assert "X-Stream-Protocol-Version: v4.channel.k8s.io" in head
        running = asyncio.ensure_future(session.run())
        error, stdin, stdout = [await session.open({"streamType": kind}) for kind in ("error", "stdin", "stdout")]
        await stdin.write(b"over and over " * 20_000)
        await stdin.close()
        found = await everything(stdout), json.loads(await everything(error))
        running.cancel()
        return found

    assert asyncio.run(work()) == (b"over and over " * 20_000, {"metadata": {}, "status": "Success"})


def test_ports_over_spdy(cluster: Cluster) -> None:
    async def work() -> list[bytes]:
        session, _ = await _Spdy(cluster).connect(
            "/api/v1/namespaces/default/pods/web/portforward", "portforward.k8s.io"
        )
        running = asyncio.ensure_future(session.run())
        found = []
        for number, port in enumerate(("82", "82", "99")):
            headers = {"port": port, "requestID": str(number)}
            error = await session.open({**headers, "streamType": "error"})
            await error.close()
            data = await session.open({**headers, "streamType": "data"})
            with suppress(ConnectionError):  # it may be refused already
                await data.write(b"hello")
            found.append(await everything(data) + await everything(error))
        running.cancel()
        return found

    first, second, refused = asyncio.run(work())
    assert (first, second) == (b"fixed", b"fixed")
    assert refused.startswith(b"error forwarding port 99 to pod web, uid ")


@pytest.mark.parametrize(
    ("protocols", "head"),
    [
        ((), "HTTP/1.1 400 "),
        (("v9.channel.k8s.io",), "HTTP/1.1 403 "),
    ],
)
def test_protocols_that_are_not_spoken(cluster: Cluster, protocols: tuple[str, ...], head: str) -> None:
    path = "/api/v1/namespaces/default/pods/web/exec?command=cat&stdout=1"
    _, found = asyncio.run(_Spdy(cluster).connect(path, *protocols))
    assert found.startswith(head)


# -------------------------------------------------------- other clients, and HTTP


def test_the_python_client_runs_commands_and_forwards_ports(cluster: Cluster) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    from kubernetes.stream import portforward, stream

    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(cluster.kubeconfig))
    call = stream(
        api.connect_get_namespaced_pod_exec,
        "web",
        "default",
        command=["fail"],
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    call.run_forever(timeout=10)
    assert (call.read_stdout(), call.read_stderr(), call.returncode) == ("so far\n", "no further\n", 3)
    forwarded = portforward(api.connect_get_namespaced_pod_portforward, "web", "default", ports="82")
    connection = forwarded.socket(82)
    connection.settimeout(10)
    connection.sendall(b"anything")
    assert connection.recv(10) == b"fixed"
    assert api.read_namespaced_pod_log("web", "default", tail_lines=1) == "three\n"


def test_a_python_client_that_closes_first_reads_every_exit_code(cluster: Cluster) -> None:
    """The client leaves as soon as it has read the status: what the server sends later would reach its next connection."""
    kubernetes = pytest.importorskip("kubernetes")
    from kubernetes.stream import stream

    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(cluster.kubeconfig))
    codes = set()
    for _ in range(200):
        call = stream(
            api.connect_get_namespaced_pod_exec,
            "web",
            "default",
            command=["fail"],
            stdout=True,
            stderr=True,
            _preload_content=False,
        )
        call.run_forever(timeout=60)
        codes.add((call.returncode, call.read_stdout()))
        call.close()
    assert codes == {(3, "so far\n")}


def test_scripts_come_over_http(cluster: Cluster, client: synchronous.Client) -> None:
    script = {
        "name": "scripted",
        "container": "second",
        "log": [[0, "first"], [1e9, "much later"]],
        "exec": {"id -u": "0\n", "": {"stderr": "no", "exit_code": 126}},
        "ports": {"99": "pong"},
    }
    client.request("POST", "/fakeapiserver/scripts", body=script)
    assert b"".join(client.logs("scripted", container="second")) == b"first\n"
    assert client.run("scripted", ["id", "-u"], container="second").stdout == b"0\n"
    assert client.run("scripted", ["other"], container="second").exit_code == 126
    with client.port_forward("scripted", 99) as local, socket.create_connection(("127.0.0.1", local), 60) as connection:
        connection.sendall(b"ping")
        assert connection.recv(10) == b"pong"
