"""The fakeapiserver command: what it starts, what it prints, how it exits."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.flags import parse

COMMAND = [sys.executable, "-m", "fakeapiserver"]


def run(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """`serve --output json`: the process, and what it printed when it was ready."""
    command = [*COMMAND, "serve", "--output=json", f"--write-kubeconfig={tmp_path}/kubeconfig"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_serve_writes_a_private_kubeconfig(served: tuple[subprocess.Popen[str], dict[str, str]]) -> None:
    _, facts = served
    path = Path(facts["kubeconfig"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["clusters"][0]["cluster"]["server"] == facts["url"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_on_a_signal(served: tuple[subprocess.Popen[str], dict[str, str]], number: signal.Signals) -> None:
    process, _ = served
    process.send_signal(number)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--nope"], "unknown flag: --nope"),
        (["--secure-port"], "flag needs an argument: --secure-port"),
        (["--secure-port=x"], "--secure-port must be a number from 0 to 65535, not 'x'"),
        (["--bind-address=here"], "--bind-address must be an IP address, not 'here'"),
        (["--advertise-address=a.b"], "--advertise-address must be an IP address, not 'a.b'"),
        (["--tls-cert-file=a.crt"], "--tls-cert-file and --tls-private-key-file belong together"),
        (["--tls-cert-file=/no/file", "--tls-private-key-file=/no/file"], "--tls-cert-file: there is no file /no/file"),
        (["--controllers=*,-wizard-controller"], '--controllers: "wizard-controller" is not in the list'),
        (["--service-cluster-ip-range=10.0.0.0/33"], "--service-cluster-ip-range must be a CIDR"),
        (["--service-cluster-ip-range=10.0.0.0/30"], "must be at least 8 IP addresses"),
        (["--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24"], "must be of different IP family"),
        (["--service-cluster-ip-range=10.0.0.0/24,fd00::/112,fd01::/112"], "must not contain more than two entries"),
        (["--advertise-address=fd00::1"], 'service IP family "10.0.0.0/24" must match public address family "fd00::1"'),
        (
            ["--service-node-port-range=a-b"],
            'invalid argument "a-b" for "--service-node-port-range" flag: strconv.Atoi',
        ),
        (["--service-node-port-range=9-8"], "end port cannot be less than start port: 9-8"),
        (["--service-node-port-range=1-65536"], "the port range cannot be greater than 65535: 1-65536"),
        (["--kubernetes-service-node-port=70000"], "--kubernetes-service-node-port 70000 must be between 0 and 65535"),
        (
            ["--kubernetes-service-node-port=80"],
            "kubernetes service node port range 30000-32767 doesn't contain 80",
        ),
        (["--service-node-port-range=1-2+3"], r"unable to parse port range: 1-2\+3"),
        (["--output=xml"], "--output must be text or json, not 'xml'"),
        (["pods"], "unexpected argument 'pods'"),
    ],
)
def test_a_wrong_command_line_is_refused_with_one_sentence(flags: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("*", r"\*").replace("(", r"\(")):
        parse(flags)


def test_usage_errors_exit_with_2() -> None:
    done = run("serve", "--nope")
    assert (done.returncode, done.stderr) == (
        2,
        "fakeapiserver: unknown flag: --nope (see fakeapiserver serve --help)\n",
    )


@pytest.mark.parametrize(
    ("flags", "attribute", "value"),
    [
        (["--secure-port=6443"], "secure_port", 6443),
        (["--service-node-port-range=30000-30009"], "service_node_port_range", range(30000, 30010)),
        (["--service-node-port-range= 30000+9 "], "service_node_port_range", range(30000, 30010)),
        (["--service-node-port-range=8080"], "service_node_port_range", range(8080, 8081)),
        (["--secure-port", "6443"], "secure_port", 6443),
        (["--authorization-mode=Node,RBAC"], "authorization_mode", ("Node", "RBAC")),
        (["--anonymous-auth=false"], "anonymous_auth", False),
        (["--anonymous-auth"], "anonymous_auth", True),
        (["--controllers=none"], "controllers", ("none",)),
        (["--controllers=*,-deployment-controller"], "controllers", ("*", "-deployment-controller")),
        (["--enable-priority-and-fairness=false"], "enable_priority_and_fairness", False),
        (["--max-requests-inflight=1"], "max_requests_inflight", 1),
        (["--max-mutating-requests-inflight=0"], "max_mutating_requests_inflight", 0),
        (["--request-timeout=1m30s"], "request_timeout", 90.0),
        (["--min-request-timeout=5"], "min_request_timeout", 5),
        (["--service_account_issuer=https://me"], "service_account_issuer", ("https://me",)),
        (["--service-account-issuer=a", "--service-account-issuer=b"], "service_account_issuer", ("a", "b")),
        (
            ["--disable-admission-plugins=A,B", "--disable-admission-plugins=C"],
            "disable_admission_plugins",
            ("A", "B", "C"),
        ),
        (["--disable-admission-plugins=NamespaceLifecycle"], "disable_admission_plugins", ("NamespaceLifecycle",)),
        (["--feature-gates=CBORServingAndStorage=true"], "feature_gates", {"CBORServingAndStorage": True}),
        (
            ["--feature-gates=A=true,kube:CBORServingAndStorage=true", "--feature-gates=A=false"],
            "feature_gates",
            {"A": False, "CBORServingAndStorage": True},
        ),
    ],
)
def test_flags_are_kube_apiservers(flags: list[str], attribute: str, value: object) -> None:
    assert getattr(parse(flags).config, attribute) == value


def test_upstreams_other_flags_are_accepted_with_a_warning() -> None:
    parsed = parse(["--etcd-servers=http://127.0.0.1:2379", "--allow-privileged"])
    assert parsed.warnings == [
        "--allow-privileged is kube-apiserver's, but has no effect here",
    ]


@pytest.mark.parametrize(
    ("gates", "complaint"),
    [
        ("AllAlpha", "missing bool value for AllAlpha"),
        ("kube:AllAlpha", "missing bool value for AllAlpha"),
        ("AllAlpha=x", 'invalid value of AllAlpha=x, err: strconv.ParseBool: parsing "x": invalid syntax'),
        ("other:AllAlpha=true", "component not registered: other"),
    ],
)
def test_gates_are_refused_in_upstreams_words(gates: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse([f"--feature-gates={gates}"])
    assert str(refused.value) == complaint


def test_gates_that_will_be_removed_are_warned_of() -> None:
    parsed = parse(["--kubernetes-version=1.34", "--feature-gates=DynamicResourceAllocation=false"])
    assert parsed.warnings == [
        "Setting GA feature gate DynamicResourceAllocation=false. It will be removed in a future release."
    ]


def test_gates_that_change_nothing_are_accepted_with_a_warning() -> None:
    parsed = parse(["--feature-gates=CBORServingAndStorage=true,AllAlpha=false,GangScheduling=false"])
    assert parsed.warnings == ["--feature-gates: GangScheduling has no effect here"]


def test_a_port_in_use_exits_with_1_and_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", f"--secure-port={port}")
    message = f"fakeapiserver: port {port} is in use; choose another with --secure-port (port= of a Cluster), or 0 for a free one\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_place_that_cannot_be_written_exits_with_1_and_one_line(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    for flag in (f"--write-kubeconfig={blocker}/kubeconfig", f"--cert-dir={blocker}/certs"):
        done = run("serve", flag)
        assert done.returncode == 1
        assert done.stderr.startswith("fakeapiserver: can't ")
        assert done.stderr.count("\n") == 1


OTHERS = "# mine\nkind: Config\nclusters: [{name: prod, cluster: {}}]\ncurrent-context: 'prod'  # careful\n"


class TestWriteKubeconfig:
    """`--write-kubeconfig FILE`, where FILE is in use already."""

    def test_serve_adds_its_context_and_takes_it_out_again(self, tmp_path: Path) -> None:
        path = tmp_path / "config"
        path.write_text(OTHERS)
        command = [*COMMAND, "serve", "--output=json", f"--write-kubeconfig={path}", "--context-name=mine"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                facts = json.loads(process.stdout.readline())
                found = yaml.safe_load(path.read_text())
            finally:
                process.send_signal(signal.SIGINT)
        assert facts["context"] == found["current-context"] == "mine"
        assert [item["name"] for item in found["clusters"]] == ["mine", "prod"]
        assert found["contexts"][0]["context"]["user"] == found["users"][0]["name"] == "mine"
        assert (process.returncode, path.read_text()) == (0, OTHERS)

    def test_run_does_so_too(self, tmp_path: Path) -> None:
        path = tmp_path / "config"
        path.write_text(OTHERS)
        done = run("run", f"--write-kubeconfig={path}", "--", "cat", str(path))
        assert yaml.safe_load(done.stdout)["current-context"] == "fakeapiserver"
        assert done.stderr.endswith('serves the command as context "fakeapiserver"\n')
        assert path.read_text() == OTHERS

    @pytest.mark.parametrize("command", ["serve", "run"])
    def test_what_is_no_kubeconfig_is_refused_before_anything_starts(self, tmp_path: Path, command: str) -> None:
        path = tmp_path / "pod.yaml"
        path.write_text("apiVersion: v1\nkind: Pod\n")
        done = run(command, f"--write-kubeconfig={path}", *([] if command == "serve" else ["--", "true"]))
        message = f"{path} is not a kubeconfig: its kind is Pod, not Config; it is left as it is, name another file"
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            f"fakeapiserver: {message} (see fakeapiserver {command} --help)\n",
        )
        assert path.read_text() == "apiVersion: v1\nkind: Pod\n"

    @pytest.mark.parametrize("name", ["", "  ", "a\nb"])
    def test_a_context_needs_a_name(self, name: str) -> None:
        with pytest.raises(UsageError, match="--context-name must be a name such as fakeapiserver, not "):
            parse([f"--context-name={name}"])


class TestRun:
    """`run -- CMD`."""

    def test_exits_as_the_command_did(self) -> None:
        assert run("run", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7

    def test_sets_kubeconfig_and_removes_it(self) -> None:
        done = run("run", "--", sys.executable, "-c", "import os; print(os.environ['KUBECONFIG'])")
        assert done.stdout.strip().endswith("kubeconfig")
        assert not os.path.exists(done.stdout.strip())

    def test_reports_a_death_by_signal_as_shells_do(self) -> None:
        assert run("run", "--", "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL

    def test_an_admission_plugin_that_cannot_start_ends_it(self) -> None:
        done = run("run", "--enable-admission-plugins=ImagePolicyWebhook", "--", "true")
        assert done.returncode == 2
        assert 'init admission plugin "ImagePolicyWebhook": no config specified' in done.stderr

    @pytest.mark.parametrize(
        ("words", "status", "complaint"),
        [
            ([], 2, "run needs a command: fakeapiserver run [FLAG ...] -- COMMAND"),
            (["--", "no-such-command-anywhere"], 127, "there is no command 'no-such-command-anywhere'"),
        ],
    )
    def test_says_what_is_wrong(self, words: list[str], status: int, complaint: str) -> None:
        done = run("run", *words)
        assert done.returncode == status
        assert complaint in done.stderr
