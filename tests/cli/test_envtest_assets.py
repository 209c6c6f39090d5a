"""`fakeapiserver envtest-assets`, and what it writes: kube-apiserver, etcd and kubectl as envtest starts and ends them."""

import http.client
import json
import os
import select
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from conformance.bench.servers import free_port
from fakeapiserver.cli import envtest_assets
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.flags import parse
from fakeapiserver.cli.kube_apiserver import upstream_defaults
from fakeapiserver.transport.certificates import create_authority, issue_client, save
from fakeapiserver.transport.key_pair import KeyPair

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
COMMAND = [sys.executable, "-m", "fakeapiserver", "envtest-assets"]
DEADLINE = 60.0  # seconds


def command(*arguments: str, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment, "PATH": path or os.environ["PATH"]}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=DEADLINE, env=env
    )


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder's name") / "bin"
    assert command(str(folder)).returncode == 0
    return folder


class TestCommand:
    """Tests the command's output and exit codes."""

    def test_prints_a_line_for_the_shell(self, tmp_path: Path) -> None:
        folder = tmp_path / "with space"
        line = command(str(folder)).stdout
        assert line == f"export KUBEBUILDER_ASSETS='{folder}'\n"
        shown = subprocess.run(
            ["sh", "-c", f"{line} echo $KUBEBUILDER_ASSETS"], capture_output=True, text=True, check=True
        )
        assert shown.stdout == f"{folder}\n"

    def test_links_the_kubectl_on_the_path(self, tmp_path: Path) -> None:
        kubectl = tmp_path / "tools" / "kubectl"
        kubectl.parent.mkdir()
        kubectl.write_text("#!/bin/sh\necho it is me\n")
        kubectl.chmod(0o755)
        folder = tmp_path / "assets"
        for _ in range(2):  # the second time its own link is on the path too
            done = command("--output=json", str(folder), path=f"{folder}:{kubectl.parent}")
            assert json.loads(done.stdout) == {"KUBEBUILDER_ASSETS": str(folder), "kubectl": str(kubectl)}
            assert subprocess.run([folder / "kubectl"], capture_output=True, check=True).stdout == b"it is me\n"

    def test_does_without_kubectl(self, tmp_path: Path) -> None:
        done = command("--output", "json", str(tmp_path), path=str(tmp_path))
        assert json.loads(done.stdout) == {"KUBEBUILDER_ASSETS": str(tmp_path), "kubectl": None}
        assert done.stderr == "fakeapiserver: there is no kubectl on the PATH; what needs none works all the same\n"

    def test_the_default_folder_is_in_the_cache_and_stays(self, tmp_path: Path) -> None:
        first, second = (command(XDG_CACHE_HOME=str(tmp_path)).stdout for _ in range(2))
        assert first == second
        assert first.startswith(f"export KUBEBUILDER_ASSETS={tmp_path}/fakeapiserver/envtest-assets-")

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["--nope"], "unknown flag: --nope"),
            (["--nope=1"], "unknown flag: --nope"),
            (["--output=xml"], "--output must be text or json, not 'xml'"),
            (["--output"], "flag needs an argument: --output"),
            (["a", "b"], "unexpected argument 'b': the folder is 'a'"),
        ],
    )
    def test_a_wrong_command_line_exits_with_2(self, arguments: list[str], complaint: str) -> None:
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"fakeapiserver: {complaint} (see fakeapiserver envtest-assets --help)\n"

    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            (["-p", "path"], "{folder}\n"),
            (["-p=path"], "{folder}\n"),
            (["--print=env"], "export KUBEBUILDER_ASSETS={folder}\n"),
            (["-p", "overview"], "Version: 1.37.2\nOS/Arch: {platform}\nPath: {folder}\n"),
        ],
    )
    def test_prints_what_setup_envtest_prints(self, arguments: list[str], shown: str, tmp_path: Path) -> None:
        expected = shown.format(folder=tmp_path, platform="/".join(envtest_assets.platform()))
        assert command(*arguments, str(tmp_path)).stdout == expected

    @pytest.mark.parametrize(
        ("selector", "minor"),
        [
            ("1.33", "1.33"),
            ("1.34.x", "1.34"),
            ("1.34.*", "1.34"),
            ("1.35.4", "1.35"),
            ("v1.35.0", "1.35"),
            ("1.35.x!", "1.35"),
            ("latest", "1.37"),
            ("latest!", "1.37"),
        ],
    )
    def test_selectors_choose_a_minor_version(self, selector: str, minor: str) -> None:
        assert envtest_assets.read_version(selector) == f"v{minor}"

    def test_makefiles_of_kubebuilder_call_it(self, assets: Path, tmp_path: Path) -> None:
        """By the name setup-envtest, with a folder of the project; the programs are of the version."""
        arguments = ["use", "1.35", "--bin-dir", "bin", "-p", "path", "-i", "--index=x"]
        done = subprocess.run(
            [assets / "setup-envtest", *arguments], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        folder = Path(done.stdout.strip())
        assert folder.parent == tmp_path / "bin" / "k8s"
        version = subprocess.run(
            [folder / "kube-apiserver", "--version"], capture_output=True, text=True, check=True, timeout=DEADLINE
        )
        assert version.stdout.startswith("Kubernetes v1.35.")

    def test_lists_the_versions(self) -> None:
        rows = [row.split() for row in command("list").stdout.splitlines()]
        assert [row[1].rpartition(".")[0] for row in rows] == ["v1.37", "v1.36", "v1.35", "v1.34", "v1.33"]
        assert [row["version"] for row in json.loads(command("list", "--output=json").stdout)] == [
            row[1] for row in rows
        ]

    def test_assets_that_are_there_already_are_used_on_request(self, assets: Path, tmp_path: Path) -> None:
        done = command("use", "1.33", "--use-env", "-p", "path", KUBEBUILDER_ASSETS=str(assets))
        assert done.stdout == f"{assets}\n"

    @pytest.mark.parametrize("name", ["kube-apiserver", "etcd", "setup-envtest"])
    def test_programs_of_others_stay(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).write_text("#!/bin/sh\necho real\n")
        done = command(str(tmp_path))
        complaint = f"can't write {tmp_path}/{name}: it exists and is not from this command; choose another folder"
        assert (done.returncode, done.stderr) == (1, f"fakeapiserver: {complaint}\n")
        assert {path.name for path in tmp_path.iterdir()} == {name}

    def test_a_kubectl_that_is_a_file_stays(self, tmp_path: Path) -> None:
        (tmp_path / "kubectl").write_text("mine")
        facts = json.loads(command("-p", "json", str(tmp_path)).stdout)
        assert facts["kubectl"] == str(tmp_path / "kubectl")
        assert (tmp_path / "kubectl").read_text() == "mine"

    def test_a_folder_that_cannot_be_written_exits_with_1(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        done = command(str(tmp_path / "file" / "assets"))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"fakeapiserver: can't write {tmp_path}/file/assets: Not a directory\n"

    def test_the_programs_run_in_this_very_interpreter(self, assets: Path) -> None:
        for name in ("kube-apiserver", "etcd"):
            assert stat.S_IMODE((assets / name).stat().st_mode) == 0o755
            assert sys.executable in (assets / name).read_text()


@dataclass(slots=True)
class Running:
    """A started program, alone in its process group. `gone` becomes readable when no process has the pipe's other end open."""

    process: subprocess.Popen[bytes]
    port: int
    gone: int = -1

    def get(self, path: str, context: ssl.SSLContext | None = None, method: str = "GET") -> tuple[int, str]:
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        options = {"context": context} if context else {}
        connection = kind("127.0.0.1", self.port, timeout=DEADLINE, **options)
        connection.request(method, path)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def end(self, number: signal.Signals) -> int:
        """Its exit status after a signal to the whole group, as envtest gives it."""
        os.killpg(self.process.pid, number)
        return self.process.wait(DEADLINE)

    def nothing_left(self) -> bool:
        readable, _, _ = select.select([self.gone], [], [], DEADLINE)
        return bool(readable) and os.read(self.gone, 1) == b""


def unverified(client: KeyPair | None = None, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None and folder is not None:
        save(folder, "client", client)
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context


def listens(port: int, process: subprocess.Popen[bytes]) -> None:
    """Returns when something accepts connections; fails when the program ends before, or takes too long."""
    for _ in range(400):
        assert process.poll() is None, "it ended instead of listening"
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        select.select([], [], [], DEADLINE / 400)
    raise AssertionError(f"nothing listens on {port}")


def envtest_arguments(folder: Path, port: int | str, *more: str) -> list[str]:
    """Returns the flags with which controller-runtime's envtest starts kube-apiserver; its certificates are in the folder."""
    return [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}",
        f"--client-ca-file={folder}/ca.crt",
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:1",
        f"--secure-port={port}",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={folder}/sa.crt",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        *more,
    ]


class Launcher:
    """Starts programs and ends what a test leaves running."""

    def __init__(self, assets: Path, folder: Path) -> None:
        self.assets = assets
        self.folder = folder
        self.authority = create_authority()
        save(folder, "ca", self.authority)
        save(folder, "sa", create_authority())
        self._started: list[Running] = []

    def etcd(self) -> Running:
        url = "http://127.0.0.1:{port}"
        return self.start("etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}", "--unsafe-no-fsync")

    def kube_apiserver(self, *more: str) -> Running:
        return self.start("kube-apiserver", *envtest_arguments(self.folder, "{port}", *more))

    def start(self, name: str, *arguments: str) -> Running:
        """`{port}` in an argument is a free port; returns when something listens there."""
        gone, held = os.pipe()
        port = free_port()
        filled = [argument.replace("{port}", str(port)) for argument in arguments]
        process = subprocess.Popen([self.assets / name, *filled], process_group=0, pass_fds=[held])
        os.close(held)
        running = Running(process, port, gone)
        self._started.append(running)
        listens(port, process)
        return running

    def close(self) -> None:
        for running in self._started:
            if running.process.poll() is None:
                running.end(signal.SIGKILL)
            os.close(running.gone)


@pytest.fixture
def launcher(assets: Path, tmp_path: Path) -> Iterator[Launcher]:
    launcher = Launcher(assets, tmp_path)
    yield launcher
    launcher.close()


class TestEtcd:
    """The stand-in: healthy, and that is all."""

    @pytest.mark.parametrize(
        ("method", "path", "status", "body"),
        [
            ("GET", "/health", 200, '{"health":"true","reason":""}'),
            ("GET", "/health?serializable=true", 200, '{"health":"true","reason":""}'),
            ("GET", "/livez", 200, "ok\n"),
            ("GET", "/readyz", 200, "ok\n"),
            ("GET", "/version", 200, '{"etcdserver":"3.6.8","etcdcluster":"3.6.0","storage":"3.6.0"}'),
            ("GET", "/nope", 404, "404 page not found\n"),
            ("POST", "/health", 405, "Method Not Allowed\n"),
        ],
    )
    def test_answers_as_etcd_does(self, launcher: Launcher, method: str, path: str, status: int, body: str) -> None:
        assert launcher.etcd().get(path, method=method) == (status, body)

    def test_a_silent_client_delays_no_other_client(self, launcher: Launcher) -> None:
        etcd = launcher.etcd()
        with socket.create_connection(("127.0.0.1", etcd.port)):
            assert etcd.get("/health")[0] == 200

    def test_ends_with_the_signal_as_etcd_does(self, launcher: Launcher) -> None:
        etcd = launcher.etcd()
        assert etcd.end(signal.SIGTERM) == -signal.SIGTERM
        assert etcd.nothing_left()

    @pytest.mark.parametrize(
        ("arguments", "status", "complaint"),
        [
            (["--nope"], 2, "flag provided but not defined: -nope"),
            (["--name"], 2, "flag needs an argument: -name"),
            (["snapshot"], 2, '"snapshot" is not a valid flag'),
            (["--listen-client-urls=https://127.0.0.1:2379"], 2, "is not of the form http://ADDRESS:PORT"),
            (["--listen-client-urls=http://127.0.0.1"], 2, "is not of the form http://ADDRESS:PORT"),
            (["--listen-client-urls=http://127.0.0.1:99999"], 1, "can't listen on http://127.0.0.1:99999"),
            (["-listen-client-urls", "http://192.0.2.1:2379"], 1, "can't listen on http://192.0.2.1:2379"),
        ],
    )
    def test_says_what_is_wrong_in_one_line(
        self, assets: Path, arguments: list[str], status: int, complaint: str
    ) -> None:
        done = subprocess.run(
            [assets / "etcd", *arguments], capture_output=True, text=True, check=False, timeout=DEADLINE
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
        assert complaint in done.stderr

    def test_help_names_the_flag_that_envtest_looks_for(self, assets: Path) -> None:
        done = subprocess.run([assets / "etcd", "--help"], capture_output=True, text=True, check=True, timeout=DEADLINE)
        assert "\n  --unsafe-no-fsync 'false'\n" in done.stdout


class TestKubeAPIServer:
    """The server under kube-apiserver's name."""

    def test_help_names_its_flags_and_not_what_it_lost(self, assets: Path) -> None:
        done = subprocess.run([assets / "kube-apiserver", "--help"], capture_output=True, text=True, check=True)
        assert "\n      --secure-port int\n" in done.stdout
        assert "--insecure-port" not in done.stdout

    @pytest.mark.parametrize("version", ["v1.36", "v1.37"])
    def test_help_needs_no_interpreter(self, tmp_path: Path, version: str) -> None:
        program = tmp_path / "kube-apiserver"
        program.write_text(envtest_assets.scripts("/no/interpreter", version, root=None)["kube-apiserver"])
        done = subprocess.run(["sh", program, "--help"], capture_output=True, text=True, check=True)
        assert done.stdout == envtest_assets.help_text(version)
        assert subprocess.run(["sh", program, "--help", "--v=2"], capture_output=True, check=False).returncode == 127

    def test_prints_its_version(self, assets: Path) -> None:
        done = subprocess.run([assets / "kube-apiserver", "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == "Kubernetes v1.37.2\n"

    def test_knows_users_by_their_certificate(self, launcher: Launcher, tmp_path: Path) -> None:
        server = launcher.kube_apiserver()
        admin = unverified(issue_client(launcher.authority, "admin", ["system:masters"]), tmp_path)
        assert server.get("/healthz", unverified()) == (200, "ok")
        assert server.get("/api/v1/namespaces/default", admin)[0] == 200
        assert server.get("/api/v1/namespaces/default", unverified())[0] == 403

    def test_a_list_flag_given_twice_adds_up(self, launcher: Launcher, tmp_path: Path) -> None:
        """envtest's Configure().Append gives the default and the addition as two flags."""
        server = launcher.kube_apiserver("--authorization-mode=AlwaysAllow")
        jane = unverified(issue_client(launcher.authority, "jane", []), tmp_path)
        assert server.get("/api/v1/namespaces/default", jane)[0] == 200

    def test_makes_its_certificate_as_kube_apiserver_does(self, launcher: Launcher) -> None:
        launcher.kube_apiserver()
        kept = {path.name for path in launcher.folder.iterdir()}
        assert kept == {"apiserver.crt", "apiserver.key", "ca.crt", "ca.key", "sa.crt", "sa.key"}

    @pytest.mark.parametrize(
        ("more", "complaint"),
        [
            ("--nope", "Error: unknown flag: --nope\n"),
            ("--write-kubeconfig=/tmp/k", "Error: unknown flag: --write-kubeconfig\n"),
            ("pods", "Error: unexpected argument 'pods'\n"),
            ("--etcd-servers=", "Error: --etcd-servers must be specified\n"),
            (
                "--service-account-key-file=/nope",
                "Error: open /nope: no such file or directory\n",
            ),
            ("--client-ca-file=/nope", "Error: open /nope: no such file or directory\n"),
            ("--cert-dir=/proc/nope", "Error: can't use --cert-dir /proc/nope: No such file or directory\n"),
        ],
    )
    def test_says_what_is_wrong_in_one_line(self, launcher: Launcher, more: str, complaint: str) -> None:
        arguments = envtest_arguments(launcher.folder, 0, more)
        done = subprocess.run(
            [launcher.assets / "kube-apiserver", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
        assert (done.returncode, done.stdout, done.stderr) == (1, "", complaint)

    @pytest.mark.parametrize(
        ("bundle", "complaint"),
        [
            ("", 'missing content for CA bundle "client-ca-bundle::{}"'),
            (
                "text",
                'error loading CA bundle for "client-ca-bundle::{}": data does not contain any valid RSA or ECDSA',
            ),
            (
                "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
                'error loading CA bundle for "client-ca-bundle::{}": x509: malformed certificate',
            ),
        ],
    )
    def test_rejects_an_invalid_client_ca(self, launcher: Launcher, bundle: str, complaint: str) -> None:
        """The file is rejected at the start, not when a client presents a certificate."""
        path = launcher.folder / "bundle.pem"
        path.write_text(bundle)
        arguments = envtest_arguments(launcher.folder, 0, f"--client-ca-file={path}")
        command = [launcher.assets / "kube-apiserver", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(f"Error: {complaint.format(path)}")

    def test_takes_an_address_for_its_range(self, launcher: Launcher) -> None:
        """Go's CIDR parser ignores the bits after the prefix."""
        server = launcher.kube_apiserver("--service-cluster-ip-range=10.0.0.1/24")
        assert server.get("/readyz", unverified()) == (200, "ok")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_three_at_a_time_end_with_a_signal_and_leave_nothing(
    launcher: Launcher, number: signal.Signals, status: int
) -> None:
    servers = [launcher.kube_apiserver() for _ in range(3)]
    etcds = [launcher.etcd() for _ in range(3)]
    assert [server.get("/healthz", unverified()) for server in servers] == [(200, "ok")] * 3
    assert [server.end(number) for server in servers] == [status] * 3
    assert [etcd.end(number) for etcd in etcds] == [-number] * 3
    assert all(running.nothing_left() for running in [*servers, *etcds])


def test_suites_may_ask_for_controllers_and_nodes() -> None:
    """By `ControlPlane.GetAPIServer().Configure().Set("controllers", "*").Set("nodes", "2")`; flags of ours else are refused."""
    config = parse(["--controllers=*", "--nodes=2"], upstream_defaults()).config
    assert (config.controllers, config.nodes) == (("*",), 2)
    with pytest.raises(UsageError, match="unknown flag: --faults"):
        parse(["--faults=f.yaml"], upstream_defaults())


def test_nodes_work_with_envtests_own_flags(
    launcher: Launcher, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """envtest asks for RBAC alone, and for a serving certificate that is no authority."""
    server = launcher.kube_apiserver("--controllers=*", "--nodes=1")
    admin = unverified(issue_client(launcher.authority, "admin", ["system:masters"]), tmp_path)
    for _ in range(400):
        nodes = json.loads(server.get("/api/v1/nodes", admin)[1])["items"]
        if [c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]:
            break
        select.select([], [], [], DEADLINE / 400)
    else:
        pytest.fail(f"no node is ready: {capfd.readouterr().err}")
    assert server.end(signal.SIGTERM) == 0
    assert "ERROR" not in capfd.readouterr().err


def self_signed(folder: Path) -> ssl.SSLContext:
    """A client certificate that is its own authority and has no extensions, as jenvtest makes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = ((NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.COMMON_NAME, "jenvtest"))
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now - timedelta(hours=1), now + timedelta(hours=1)
    )
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    pair = KeyPair(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    return unverified(pair, folder)


def test_javas_jenvtest_starts_them_too(launcher: Launcher, tmp_path: Path) -> None:
    """Values behind a space, flags twice, one key for everything, a client certificate that is its own authority."""
    admin = self_signed(tmp_path)
    save(tmp_path, "apiserver", create_authority())
    etcd = launcher.start(
        "etcd", "-data-dir", "data", "-wal-dir", "wal", "--listen-client-urls", "http://0.0.0.0:{port}"
    )
    assert etcd.get("/health")[0] == 200
    key, certificate = str(tmp_path / "apiserver.key"), str(tmp_path / "apiserver.crt")
    server = launcher.start(
        "kube-apiserver",
        *("--cert-dir", str(tmp_path), "--secure-port", "{port}", "--etcd-servers", "http://0.0.0.0:1"),
        *("--authorization-mode", "RBAC", "--service-account-issuer", "https://localhost"),
        *("--service-account-signing-key-file", key, "--service-account-signing-key-file", key),
        *("--service-account-key-file", key, "--service-account-issuer", certificate),
        *("--disable-admission-plugins", "ServiceAccount", "--client-ca-file", str(tmp_path / "client.crt")),
        *("--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged"),
    )
    assert server.get("/readyz", admin) == (200, "ok")
    assert server.get("/api/v1/namespaces/default", admin)[0] == 200


STARTER = """\
import subprocess, sys
for command in sys.argv[1:]:
    process = subprocess.Popen(command.split(), pass_fds=[int(sys.stdin.readline())], process_group=0)
    print(process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh")
@pytest.mark.parametrize("detached", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_they_end_with_a_test_run_that_is_killed_unless_detached(tmp_path: Path, detached: bool) -> None:
    """A killed test run can't stop its servers: they notice its end. Detached servers live on."""
    assets = tmp_path / "assets"
    assert command(str(assets), *["--detached"] * detached).returncode == 0
    save(tmp_path, "ca", create_authority())
    save(tmp_path, "sa", create_authority())
    ports = free_port(), free_port()
    commands = [
        f"{assets}/etcd --listen-client-urls=http://127.0.0.1:{ports[0]}",
        " ".join([f"{assets}/kube-apiserver", *envtest_arguments(tmp_path, ports[1])]),
    ]
    pipes = [os.pipe() for _ in commands]
    held = [write for _, write in pipes]
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, *commands], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=held
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write("".join(f"{write}\n" for write in held).encode())
        starter.stdin.flush()
        pids = [int(starter.stdout.readline()) for _ in commands]
        for port in ports:
            listens(port, starter)
        starter.kill()
    for write in held:
        os.close(write)
    ended = [bool(select.select([read], [], [], 3.0 if detached else DEADLINE)[0]) for read, _ in pipes]
    for pid in pids if detached else ():
        os.kill(pid, signal.SIGKILL)
    for read, _ in pipes:
        os.close(read)
    assert ended == [not detached] * 2
