"""No test run with our fixtures reaches a cluster of the user: a decoy stands for it, named wherever clients look for a cluster."""

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.testing.project import Project

SUITE = Path(__file__).with_name("guarded_suite.py")

IMPORTS_EVERYTHING = """\
import importlib, os
for name in ("kubernetes", "kubernetes.aio", "kubernetes_asyncio", "kr8s", "lightkube", "kopf", "pykube"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
"""
CLIENTS_ARE_MADE = """\
import asyncio, kubernetes, kubernetes_asyncio, lightkube
kubernetes.config.load_kube_config()
asyncio.run(kubernetes_asyncio.config.load_kube_config())
CLIENT = kubernetes.client.CoreV1Api()
LIGHTKUBE = lightkube.Client()
MOCK = kubernetes.client.ApiClient(kubernetes.client.Configuration(host="http://localhost:1"))

def pytest_sessionfinish():
    assert MOCK.configuration.host == "http://localhost:1"
"""
KUBECONFIG_IS_SET = "import os; os.environ['KUBECONFIG'] = os.environ['HOME'] + '/.kube/config'\n"
SESSION_FIXTURE = """\
import pytest
@pytest.fixture(scope="session", autouse=True)
def prepared():
    "Runs before the first fake cluster is there."
    from kubernetes import client, config
    config.load_kube_config()
    try:
        client.CoreV1Api().delete_collection_namespaced_pod("default", _request_timeout=60)
    except Exception as error:
        print(error)
    else:
        raise AssertionError("deleted the pods of some cluster")
"""
SERVICE_ACCOUNT = """\
import os, pathlib
import kubernetes, kubernetes_asyncio, kubernetes.config.incluster_config, kubernetes_asyncio.config.incluster_config
account = pathlib.Path(os.environ["HOME"]) / "account"
account.mkdir(exist_ok=True)
for name in ("token", "ca.crt"):
    (account / name).write_text("x")
for library in (kubernetes, kubernetes_asyncio):
    library.config.incluster_config.SERVICE_TOKEN_FILENAME = str(account / "token")
    library.config.incluster_config.SERVICE_CERT_FILENAME = str(account / "ca.crt")
"""


class Decoy(ThreadingHTTPServer):
    """The user's cluster. It counts connections, which is more than requests."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                decoy.requests.append(self.rfile.readline(200).decode("latin-1").strip())
                self.close_connection = True

        decoy = self
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def kubeconfig(self) -> str:
        return f"""\
apiVersion: v1
kind: Config
clusters: [{{name: production, cluster: {{server: "http://127.0.0.1:{self.server_port}"}}}}]
users: [{{name: me, user: {{token: secret}}}}]
contexts: [{{name: production, context: {{cluster: production, user: me}}}}]
current-context: production
"""


@pytest.fixture
def decoy() -> Iterator[Decoy]:
    with Decoy() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def project(tmp_path: Path, decoy: Decoy) -> Project:
    return Project(tmp_path, decoy.kubeconfig)


@pytest.mark.parametrize(
    ("named_by", "conftest", "arguments"),
    [
        ("KUBECONFIG", IMPORTS_EVERYTHING + SESSION_FIXTURE, ["-n2"]),
        pytest.param("home", "", [], marks=pytest.mark.slow),
        pytest.param("home", KUBECONFIG_IS_SET + IMPORTS_EVERYTHING, [], marks=pytest.mark.slow),
        pytest.param("home", CLIENTS_ARE_MADE, [], marks=pytest.mark.slow),
        pytest.param("in-cluster", SERVICE_ACCOUNT, [], marks=pytest.mark.slow),
    ],
    ids=["conftest-xdist", "home", "conftest-sets-it", "clients-made-at-import", "pod"],
)
def test_no_client_reaches_the_decoy(
    named_by: str, conftest: str, arguments: list[str], project: Project, decoy: Decoy
) -> None:
    pytest.importorskip("kubernetes", reason="pip install -e '.[clients]'")
    port = str(decoy.server_port)
    elsewhere: dict[str, dict[str, str]] = {
        "KUBECONFIG": {
            "KUBECONFIG": str(project.home / ".kube/config"),
            "HELM_KUBEAPISERVER": f"http://127.0.0.1:{port}",
        },
        "home": {},
        "in-cluster": {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port},
    }
    project.environment |= elsewhere[named_by]
    project.write(conftest=conftest, test_suite=SUITE.read_text())
    done = project.pytest("-v", *arguments)
    assert decoy.requests == []
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.slow
def test_a_decoy_without_guard_is_reached(project: Project, decoy: Decoy) -> None:
    """Without the guard the decoy is reached: this shows that the tests above can fail."""
    pytest.importorskip("kubernetes", reason="pip install -e '.[clients]'")
    (project.folder / "pytest.ini").write_text("[pytest]\nfake_cluster_guard = off\n")
    project.write(test_suite=SUITE.read_text())
    project.pytest("-k", "before")
    assert len(decoy.requests) > 10


ENVIRONMENT = """\
import os, pytest
OWN = os.environ["HOME"] + "/.kube/config"

def place():
    from kubernetes.config import kube_config
    assert os.environ.get("KUBECONFIG") == kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    return "own" if os.environ["KUBECONFIG"] == OWN else "guarded"

@pytest.fixture(scope="module")
def shared():
    yield place()
    assert place() == "guarded"

@pytest.fixture(scope="module")
def only_real():
    yield place()
    assert place() == "own"

@pytest.fixture
def single(request):
    yield place()
    assert place() == ("own" if request.node.get_closest_marker("real_cluster") else "guarded")

def test_guarded(shared, single):
    assert (shared, single, place()) == ("guarded", "guarded", "guarded")

@pytest.mark.real_cluster
def test_real(shared, only_real, single):
    assert (shared, only_real, single, place()) == ("guarded", "own", "own", "own")

@pytest.mark.real_cluster
@pytest.mark.fake_cluster(controllers=())
def test_real_with_a_fake_one(single, fake_kubeconfig):
    assert os.environ["KUBECONFIG"] == fake_kubeconfig

def test_guarded_again(single):
    assert place() == "guarded"
"""


@pytest.mark.parametrize("arguments", [["-n0"], ["-n2"]], ids=["one-process", "xdist"])
def test_the_marker_real_cluster_gives_a_test_and_its_fixtures_the_own_environment_back(
    arguments: list[str], project: Project
) -> None:
    project.environment["KUBECONFIG"] = str(project.home / ".kube/config")
    project.write(test_it=ENVIRONMENT)
    done = project.pytest(*arguments, "--strict-markers")
    assert done.returncode == 0, done.stdout[-4000:]


SAYS_WHERE = """\
import os, sys, pytest
AT_IMPORT = os.environ.get("KUBECONFIG", "none")

def test_where():
    loaded = [name for name in sys.modules if name.startswith("fakeapiserver")]
    print("import", "guard" in AT_IMPORT, "test", "guard" in os.environ.get("KUBECONFIG", "none"), *sorted(loaded))
"""
USES_IT = "def test_it(fake_kubeconfig): pass\n"


@pytest.mark.parametrize(
    ("ini", "files", "printed"),
    [
        (
            "",
            {},
            "import False test False fakeapiserver fakeapiserver.lazy_modules fakeapiserver.testing fakeapiserver.testing.plugin\n",
        ),
        ("", {"test_user": USES_IT}, "import False test True"),
        ("auto", {"test_user": USES_IT}, "import False test True"),
        ("always", {}, "import True test True"),
        ("off", {"test_user": USES_IT}, "import False test False"),
    ],
    ids=["without-fixtures", "default", "auto", "always", "off"],
)
def test_the_option_decides(ini: str, files: dict[str, str], printed: str, project: Project) -> None:
    (project.folder / "pytest.ini").write_text("[pytest]\n" + f"fake_cluster_guard = {ini}\n" * bool(ini))
    project.write(test_a=SAYS_WHERE, **files)
    done = project.pytest("-s", "-q", "-k", "test_where")
    assert done.returncode == 0, done.stdout
    assert printed in done.stdout


def test_a_wrong_option_is_one_sentence(project: Project) -> None:
    (project.folder / "pytest.ini").write_text("[pytest]\nfake_cluster_guard = on\n")
    project.write(test_a=USES_IT)
    done = project.pytest()
    assert (done.returncode, done.stderr.strip()) == (
        4,
        'ERROR: fake_cluster_guard: "on" is not one of always, auto, off',
    )


def test_nothing_is_left_behind(project: Project, tmp_path: Path) -> None:
    temporary: Any = tmp_path / "temporary"
    temporary.mkdir()
    project.environment["TMPDIR"] = str(temporary)
    project.write(test_a=USES_IT)
    assert project.pytest().returncode == 0
    shutil.rmtree(temporary / f"pytest-of-{os.environ.get('USER', 'unknown')}", ignore_errors=True)
    assert [path for path in temporary.iterdir() if not path.name.startswith("pytest-of-")] == []
