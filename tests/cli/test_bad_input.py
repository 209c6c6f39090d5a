"""Each wrong command line gets one sentence that says what is wrong, and exit status 2."""

import gc
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakeapiserver import cli
from fakeapiserver.cli import serve

DIGITS = "9" * 5000


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Commands change the process: `serve` turns garbage collection off, and logging is configured."""
    handlers, level = logging.root.handlers[:], logging.root.level
    for name in ("empty.yaml", "text.yaml"):
        (tmp_path / name).write_text("" if name == "empty.yaml" else "this is no list of objects")
    (tmp_path / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serve, "_announce", _started)
    yield
    gc.enable()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def _started(*_: object) -> None:
    raise AssertionError("the server has started")


# the command line, and what its sentence contains
WRONG = [
    ("--bogus", "a command must come before the flag --bogus"),
    ("bogus", "there is no command 'bogus'"),
    ("Serve", "there is no command 'Serve'; did you mean serve?"),
    ("help nothing-like-it", "there is no topic or command 'nothing-like-it'"),
    ("help --bogus", "unknown flag: --bogus"),
    ("version --output=xml", "--output must be text or json, not 'xml'"),
    ("version --output", "flag needs an argument: --output"),
    ("version 1.36", "unexpected argument '1.36'"),
    ("completion", "completion needs a shell: bash, zsh or fish"),
    ("completion tcsh", "there is no completion for 'tcsh': choose bash, zsh or fish"),
    # numbers, ports, durations, booleans
    ("serve --nodes=-1", '--nodes: "-1" is not a number from 0 to 10000'),
    ("serve --nodes=1e9", '--nodes: "1e9" is not a number'),
    ("serve --sync=fast", "--sync must be full or normal or off, not 'fast'"),
    ("state check", "state check needs the name of a data directory"),
    ("serve --nodes=20000", '--nodes: "20000" is not a number from 0 to 10000'),
    ("serve --nodes=", '--nodes: "" is not a number'),
    (f"serve --nodes={DIGITS}", "--nodes: "),
    ("serve --nodes=٣", '--nodes: "٣" is not a number'),
    ("serve --nodes", "flag needs an argument: --nodes"),
    ("serve --secure-port=65536", "--secure-port must be a number from 0 to 65535, not '65536'"),
    ("serve --secure-port=https", "--secure-port must be a number from 0 to 65535, not 'https'"),
    (f"serve --secure-port={DIGITS}", "--secure-port must be a number from 0 to 65535"),
    ("serve --webhook-port=-1", "--webhook-port must be a number from 0 to 65535, not '-1'"),
    (
        "serve --request-timeout=5",
        'invalid argument "5" for "--request-timeout" flag: time: missing unit in duration "5"',
    ),
    ("serve --request-timeout=-1s", "a time can't be negative"),
    (f"serve --request-timeout={DIGITS}h", "time: invalid duration"),
    ("serve --local-storage=maybe", 'invalid argument "maybe" for "--local-storage" flag: strconv.ParseBool'),
    (f"serve --audit-log-maxage={DIGITS}", "value out of range"),
    (f"serve --audit-log-batch-throttle-qps={DIGITS}", "--audit-log-batch-throttle-qps"),
    (f"serve --service-node-port-range={DIGITS}-{DIGITS}", "value out of range"),
    (f"serve --kubernetes-service-node-port={DIGITS}", "value out of range"),
    (f"serve --v={DIGITS}", "--v must be a number"),
    ("serve -v x", "--v must be a number, not 'x'"),
    (f"serve --max-requests-inflight={DIGITS}", "--max-requests-inflight: "),
    # files
    ("serve --crds=nowhere", "--crds: there is no file or folder 'nowhere'"),
    ("serve --stages=nowhere", "--stages: there is no file or folder 'nowhere'"),
    ("serve --webhooks=nowhere", "--webhooks: there is no file or folder 'nowhere'"),
    ("serve --crds=text.yaml", "text.yaml"),
    ("serve --crds=folder", "there is no CustomResourceDefinition in folder"),
    ("run --stages=folder -- true", "there is no Stage in folder"),
    ("serve --crds=", "--crds is empty"),
    ("serve --client-ca-file=nowhere", "--client-ca-file: there is no file 'nowhere'"),
    ("serve --client-ca-file=folder", "--client-ca-file: 'folder' is a folder, not a file"),
    ("serve --client-ca-file=empty.yaml", "empty.yaml"),
    ("serve --token-auth-file=folder", "--token-auth-file: 'folder' is a folder, not a file"),
    ("serve --audit-policy-file=text.yaml", "text.yaml"),
    ("serve --authorization-config=text.yaml", "failed to load AuthorizationConfiguration from file"),
    ("serve --tls-cert-file=empty.yaml", "--tls-cert-file and --tls-private-key-file belong together"),
    ("serve --tls-cert-file=empty.yaml --tls-private-key-file=empty.yaml", "empty.yaml"),
    ("serve --write-kubeconfig=", "--write-kubeconfig is empty"),
    ("serve --write-kubeconfig=folder", "--write-kubeconfig: 'folder' is a folder: name a file"),
    ("serve --write-kubeconfig=text.yaml", "text.yaml"),
    ("serve --context-name=", "--context-name must be a name such as fakeapiserver, not ''"),
    # choices and lists
    ("serve --output=yaml", "--output must be text or json, not 'yaml'"),
    ("serve --controllers=pods", '--controllers: "pods" is not in the list of known controllers'),
    ("serve --step-controllers=jobs", "--step-controllers: "),
    ("serve --metrics=cpu", "cpu"),
    ("serve --authorization-mode=Rbac", "did you mean RBAC?"),
    ("serve --authorization-mode=RBAC,RBAC", "RBAC"),
    ("serve --enable-admission-plugins=PodSecurityy", "did you mean PodSecurity?"),
    ("serve --kubernetes-version=1.20", "--kubernetes-version: no recorded tables for Kubernetes 1.20"),
    ("serve --kubernetes-version=newest", "--kubernetes-version: no recorded tables for Kubernetes newest"),
    ("serve --feature-gates=AllAlpha", "missing bool value for AllAlpha"),
    ("serve --feature-gates=NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
    ("serve --runtime-config=nothing/v1=true", "nothing/v1"),
    ("serve --service-cluster-ip-range=10.0.0.0/33", "--service-cluster-ip-range must be a CIDR"),
    ("serve --bind-address=localhost", "--bind-address must be an IP address, not 'localhost'"),
    ("serve --oidc-required-claim=x", "malformed pair, expect string=string"),
    # contradictions
    ("serve --authentication-config=empty.yaml --oidc-client-id=x", "mutually exclusive"),
    ("serve --oidc-issuer-url=https://a", "oidc-issuer-url and oidc-client-id must be specified together"),
    ("serve --service-account-issuer=a --service-account-issuer=a", 'service-account-issuer "a" is already specified'),
    ("serve --kubernetes-service-node-port=80", "doesn't contain 80"),
    # words
    ("serve now", "unexpected argument 'now'"),
    ("serve -- true", "serve runs no command; use: fakeapiserver run -- true"),
    ("serve --bin-dir=x", "unknown flag: --bin-dir; it belongs to envtest-assets"),
    ("run", "run needs a command"),
    ("run true", "unexpected argument 'true'"),
    ("run --nodez=3 -- true", "unknown flag: --nodez; did you mean --nodes?"),
    ("run --nodes=x -- true", '--nodes: "x" is not a number'),
    ("run --authorization-mode=Rbac -- true", "did you mean RBAC?"),
    # other servers
    ("nodes", "--kubeconfig is missing"),
    ("nodes --kubeconfig=", "--kubeconfig is empty"),
    ("nodes --kubeconfig=nowhere", "--kubeconfig: there is no file 'nowhere'"),
    ("nodes --kubeconfig=folder", "--kubeconfig: 'folder' is a folder, not a file"),
    ("nodes --kubeconfig=kubeconfig", "--kubeconfig: 'kubeconfig' names no server to connect to"),
    ("nodes --kubeconfig=text.yaml", "--kubeconfig: 'text.yaml' names no server to connect to"),
    ("nodes --kubeconfig=kubeconfig --nodes=10001", '--nodes: "10001" is not a number from 0 to 10000'),
    ("nodes --kubeconfig=kubeconfig --control-port=70000", "--control-port must be a number from 0 to 65535"),
    ("nodes --kubeconfig=kubeconfig --kubelet-address=here", "--kubelet-address must be an IP address, not 'here'"),
    ("nodes --kubeconfig=kubeconfig --scheduler=perhaps", 'invalid argument "perhaps" for "--scheduler" flag'),
    (
        "nodes --controllers=none",
        "unknown flag: --controllers; it belongs to serve, run, diff-versions and controller-manager",
    ),
    ("requests --name=x", "unknown flag: --name; did you mean --server?"),
    ("stop --server=x", "unknown flag: --server; did you mean --name?"),
    ("nodes --background", "unknown flag: --background; it belongs to serve"),
    ("nodes now", "unexpected argument 'now'"),
    ("controller-manager", "--kubeconfig is missing"),
    ("controller-manager --kubeconfig=nowhere", "--kubeconfig: there is no file 'nowhere'"),
    ("controller-manager --kubeconfig=kubeconfig", "--kubeconfig: 'kubeconfig' names no server to connect to"),
    ("controller-manager --controllers=x", '--controllers: "x" is not in the list of known controllers'),
    ("controller-manager --secure-port=-1", "--secure-port -1 must be between 0 and 65535"),
    (f"controller-manager --concurrent-gc-syncs={DIGITS}", "value out of range"),
    ("controller-manager --leader-elect=no", 'invalid argument "no" for "--leader-elect" flag'),
    ("controller-manager now", '"kube-controller-manager" does not take any arguments, got ["now"]'),
    ("controller-manager --master=http://x:1 --root-ca-file=nowhere", "--root-ca-file: there is no file 'nowhere'"),
    # envtest
    ("envtest-assets --print=yaml", "--print must be path or env or json or overview, not 'yaml'"),
    (
        "envtest-assets use 1.20",
        "there are no programs for Kubernetes 1.20: choose one of 1.33, 1.34, 1.35, 1.36, 1.37",
    ),
    ("envtest-assets use newest", "'newest' is not a version"),
    (f"envtest-assets use 1.{DIGITS}", "is not a version"),
    ("envtest-assets use 1.35 1.36", "unexpected argument '1.36'"),
    ("envtest-assets use --os=plan9", "--os: the programs run on"),
    ("envtest-assets cleanup", "envtest-assets has no command 'cleanup'"),
    ("envtest-assets a --bin-dir=b", "leave one out"),
    ("envtest-assets --bin-dir=", "--bin-dir is empty"),
    # operators
    ("init --domain=", "--domain is empty"),
    ("init --domain=not_a_domain", "--domain 'not_a_domain'"),
    ("init --group=x", "unknown flag: --group; it belongs to create api and create webhook"),
    ("create", "create api or create webhook: choose one"),
    ("create thing", "create api or create webhook, not create thing: choose one"),
    ("create api --kind=Welcome", "create api needs --version"),
    ("create api --version=one --kind=Welcome", "--version 'one': must be like v1"),
    ("create api --version=v1 --kind=welcome", "--kind 'welcome': must be in CamelCase"),
    ("create webhook --version=v1 --kind=A --conversion=5", 'invalid argument "5" for "--conversion" flag'),
    ("manifests --check=x", 'invalid argument "x" for "--check" flag'),
    ("manifests --output=", "--output must be text or json, not ''"),
]


@pytest.mark.parametrize("command", ["nodes", "controller-manager"])
@pytest.mark.parametrize("flags", [[], ["--kubeconfig=kubeconfig"]], ids=["without a kubeconfig", "with an empty one"])
def test_the_users_own_cluster_is_never_used(
    command: str, flags: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither by KUBECONFIG, nor by ~/.kube/config, nor by a pod's service account."""
    context = {"context": {"cluster": "decoy", "user": "decoy"}, "name": "decoy"}
    cluster = {"cluster": {"server": "http://127.0.0.1:1"}, "name": "decoy"}
    decoy = {"clusters": [cluster], "contexts": [context], "users": [{"name": "decoy"}], "current-context": "decoy"}
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(json.dumps(decoy))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / ".kube" / "config"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    assert cli.main([command, *flags]) == 2
    assert ("names no server to connect to" if flags else "--kubeconfig is missing") in capsys.readouterr().err


@pytest.mark.parametrize(("line", "sentence"), WRONG, ids=[line[:60] for line, _ in WRONG])
def test_one_sentence_and_status_2(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(line.split())
    out, err = capsys.readouterr()
    assert sentence in err
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("fakeapiserver: ")
    assert "Traceback" not in err
    assert len(err) < 2500
