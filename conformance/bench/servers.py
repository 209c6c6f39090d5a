"""Starts and stops the servers that are compared, and measures what they cost."""

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from socket import socket
from typing import Final, Protocol

TOKEN: Final = "bench-admin"
_TOKENS: Final = f'{TOKEN},admin,1,"system:masters"\n'
_READY_SECONDS: Final = 60.0


class Server(Protocol):
    """`ready_seconds`: from the start of the command to the first 200 of /readyz."""

    name: str
    url: str
    ready_seconds: float

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def rss_bytes(self) -> int: ...


# below the ports that a system gives to connections and to listeners on port 0, so that no other process takes a port between here and the
# program's start; processes that run at the same time begin at different ports
_PORTS: Final = range(12_000, 20_000)
_given: Final = count()


def free_port() -> int:
    """Returns a port that nothing listens on, a different one each time. Raises OSError if all are taken."""
    for _ in _PORTS:
        port = _PORTS[(os.getpid() * 97 + next(_given)) % len(_PORTS)]
        with socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise OSError(f"none of the ports {_PORTS[0]} to {_PORTS[-1]} is free")


def wait_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Polls /readyz; RuntimeError when the process ends first, or after a minute."""
    context = ssl._create_unverified_context()
    deadline = time.monotonic() + _READY_SECONDS
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.005)
    raise RuntimeError(f"{url} was not ready within {_READY_SECONDS:.0f} s")


def _as_installed() -> dict[str, str]:
    """pip compiles what it installs: a machine that forbids bytecode would time Python's compiler instead of the start."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def rss_of(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """Resident bytes of processes together."""
    total = 0
    for process in processes:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """The last started first: an API server without its etcd would wait for it."""
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    processes.clear()


@dataclass
class Ours:
    """`fakeapiserver serve`; without controllers, as what it is compared with has none, unless `flags` say which."""

    name: str = "fakeapiserver"
    flags: Sequence[str] = ()
    url: str = ""
    ready_seconds: float = 0.0
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        tokens = Path(self._folder.name) / "tokens.csv"
        tokens.write_text(_TOKENS)
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        started = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "fakeapiserver",
            "serve",
            f"--secure-port={port}",
            f"--token-auth-file={tokens}",
            *([] if any(flag.startswith("--controllers=") for flag in self.flags) else ["--controllers=none"]),
            *self.flags,
        ]
        kubeconfig = f"--write-kubeconfig={self._folder.name}/kubeconfig"
        self._processes = [subprocess.Popen([*command, kubeconfig], stdout=subprocess.DEVNULL, env=_as_installed())]
        wait_ready(self.url, self._processes[0])
        self.ready_seconds = time.monotonic() - started

    def stop(self) -> None:
        end(self._processes)
        if self._folder is not None:
            self._folder.cleanup()

    def rss_bytes(self) -> int:
        return rss_of(self._processes)


@dataclass
class Reference:
    """kube-apiserver and etcd from a folder of envtest assets; `flags` are kube-apiserver's."""

    assets: Path
    name: str = "kube-apiserver + etcd"
    flags: Sequence[str] = ()
    url: str = ""
    ready_seconds: float = 0.0
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        state = Path(self._folder.name)
        (state / "tokens.csv").write_text(_TOKENS)
        subprocess.run(["openssl", "genrsa", "-out", "sa.key", "2048"], cwd=state, check=True, capture_output=True)
        public = ["openssl", "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"]
        subprocess.run(public, cwd=state, check=True, capture_output=True)
        port, etcd_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{port}"
        started = time.monotonic()
        self._processes = [self._run(state, *_etcd_flags(self.assets, etcd_port))]
        self._processes.append(self._run(state, *_apiserver_flags(self.assets, port, etcd_port), *self.flags))
        wait_ready(self.url, self._processes[1])
        self.ready_seconds = time.monotonic() - started

    def _run(self, state: Path, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=state, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
        )

    def stop(self) -> None:
        end(self._processes)
        if self._folder is not None:
            self._folder.cleanup()

    def rss_bytes(self) -> int:
        return rss_of(self._processes)


def _etcd_flags(assets: Path, port: int) -> list[str]:
    client = f"http://127.0.0.1:{port}"
    return [
        str(assets / "etcd"),
        "--data-dir=etcd",
        "--unsafe-no-fsync",
        "--listen-peer-urls=http://127.0.0.1:0",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
    ]


def _apiserver_flags(assets: Path, port: int, etcd_port: int) -> list[str]:
    return [
        str(assets / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--cert-dir=certs",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--token-auth-file=tokens.csv",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--service-account-signing-key-file=sa.key",
        "--service-account-key-file=sa.pub",
    ]


def fresh_cluster_seconds(repeats: int) -> list[float]:
    """Starting a Cluster() in a process that has started one before; measured in a process of its own."""
    program = (
        "import json, time\nfrom fakeapiserver import Cluster\nfound = []\n"
        f"for i in range({repeats} + 3):\n"
        "    started = time.perf_counter()\n    cluster = Cluster().start()\n"
        "    found.append(time.perf_counter() - started)\n    cluster.stop()\n"
        "print(json.dumps(found[3:]))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    found: list[float] = json.loads(done.stdout)
    return found


_AUTHORIZE: Final = """
import asyncio, json, sys, time
from pathlib import Path
from fakeapiserver.endpoints.request import Request
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.filters.request_info import request_info_of
from fakeapiserver.server.options.config import Config

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS, USERS = int(sys.argv[2]), int(sys.argv[3]), 50

async def main():
    api = APIServer(Config(token_auth_file=Path(sys.argv[1])))
    await api.start()
    async def send(method, path, expected, token="admin", body=None):
        headers = [(b"authorization", b"Bearer " + token.encode()), (b"content-type", b"application/json")]
        scope = dict(type="http", method=method, path=path, query_string=b"", headers=headers, extensions={})
        sent = dict(type="http.request", body=b"" if body is None else json.dumps(body).encode(), more_body=False)
        async def receive():
            return sent
        async def collect(message):
            assert message.get("status", expected) == expected, message
        await api.application(scope, receive, collect)
    for i in range(ROLES):
        rule = dict(verbs=["get", "list", "update"], apiGroups=["", "apps"], resources=["pods", "deployments", f"r{i}"])
        await send("POST", f"{RBAC}/clusterroles", 201, body=dict(metadata=dict(name=f"role-{i}"), rules=[rule, rule]))
    for i in range(BINDINGS):
        reference = dict(apiGroup=GROUP, kind="ClusterRole", name=f"role-{i % ROLES}")
        subjects = [dict(kind="User", apiGroup=GROUP, name=f"user-{i % USERS}")]
        body = dict(metadata=dict(name=f"binding-{i}"), roleRef=reference, subjects=subjects)
        await send("POST", f"{RBAC}/namespaces/default/rolebindings", 201, body=body)
    config_map = dict(metadata=dict(name="web"))
    await send("POST", "/api/v1/namespaces/default/configmaps", 201, body=config_map)
    chain = api.application._handle
    requests = [
        Request("GET", f"/api/v1/namespaces/default/pods/web-{i}", {}, [(b"authorization", b"Bearer user-%d" % (i % USERS))], None, {})
        for i in range(5000)
    ]

    async def authorize(i):
        request = requests[i % len(requests)]
        request.info = request_info_of(request)
        request.user = await chain._authenticate(request)
        await chain._authorize(request)

    async def get(i):
        await send("GET", "/api/v1/namespaces/default/configmaps/web", 200)

    async def refuse(i):
        await send("GET", f"/api/v1/namespaces/default/secrets/web-{i % 5000}", 403, f"user-{i % USERS}")

    async def review(i):
        wanted = dict(verb="get", resource="pods", namespace="default", name=f"web-{i % 5000}")
        spec = dict(user=f"user-{i % USERS}", resourceAttributes=wanted)
        await send("POST", REVIEWS, 201, body=dict(spec=spec))

    async def seconds(act, count, at_once):
        # Of processor time: what else the machine does then is not this server's cost.
        found = []
        for start in range(0, count, at_once):
            begun = time.process_time()
            for i in range(start, start + at_once):
                await act(i)
            found.append((time.process_time() - begun) / at_once)
        found = sorted(found[len(found) // 4:])
        return found[len(found) // 2]

    found = dict(
        authorize=await seconds(authorize, 20000, 200),
        whole_get=await seconds(get, 4000, 50),
        refuse=await seconds(refuse, 4000, 50),
        review=await seconds(review, 2000, 50),
    )
    await api.stop()
    print(json.dumps(found))

asyncio.run(main())
"""


_ADMIT: Final = """
import asyncio, copy, json, time
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config

POD, PODS = GroupVersionKind("", "v1", "Pod"), GroupVersionResource("", "v1", "pods")
USER = UserInfo("admin", groups=("system:masters",))
OBJECT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
}

async def main():
    api = APIServer(Config(controllers=()))
    await api.start()
    chain = api.scopes.admission
    found = []
    for round in range(10):
        writes = [
            Attributes("CREATE", POD, PODS, "", "default", "web", copy.deepcopy(OBJECT), None, USER) for _ in range(1000)
        ]
        started = time.process_time()
        for write in writes:
            await chain.admit(write)
            await chain.validate(write)
        found.append((time.process_time() - started) / len(writes))
    await api.stop()
    print(json.dumps(min(found)))

asyncio.run(main())
"""


def admission_seconds() -> float:
    """CPU time of the default chain of admission plugins for the creation of a pod, both steps: the best of some rounds, measured in a
    process of its own, without sockets."""
    done = subprocess.run([sys.executable, "-c", _ADMIT], check=True, capture_output=True, text=True)
    found: float = json.loads(done.stdout)
    return found


def authorization_seconds(folder: Path, roles: int = 500, bindings: int = 5000) -> dict[str, float]:
    """Measures the processor time of warm requests by 50 users for 5,000 objects, with many roles and bindings.

    `authorize` is authentication and authorization alone; `whole_get`, `refuse` and `review` are a GET, a 403 and a SubjectAccessReview
    from headers to answer. Returns the median seconds, measured in a separate process, without sockets.
    """
    tokens = folder / "bench-tokens.csv"
    tokens.write_text("admin,admin,1,system:masters\n" + "".join(f"user-{i},user-{i},{i}\n" for i in range(50)))
    command = [sys.executable, "-c", _AUTHORIZE, str(tokens), str(roles), str(bindings)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
