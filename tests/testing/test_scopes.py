"""Fixtures of each scope, in the kinds of tests that people write."""

from pathlib import Path

import pytest

from tests.testing.project import Project

CLIENT = '''\
import json, os, ssl, urllib.error, urllib.request
from base64 import b64decode

def ask(method, path, body=None):
    """A client that finds its cluster by KUBECONFIG."""
    config = json.load(open(os.environ["KUBECONFIG"]))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    with open(os.environ["KUBECONFIG"] + ".pem", "wb") as pem:
        pem.write(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
    context.load_cert_chain(pem.name)
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(cluster["server"] + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, context=context) as answer:
        return json.loads(answer.read())

def names():
    return [item["metadata"]["name"] for item in ask("GET", "/api/v1/namespaces/default/secrets")["items"]]

def create(name):
    ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": name}})
    return names()
'''
SUITE = """\
import asyncio, os, unittest
import pytest
from client import create, names
from fakeapiserver.testing import FakeClusterTestCase, fake_cluster

pytestmark = pytest.mark.fake_cluster(controllers=())
seen = set()

@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("fixture", ["fake_cluster", "fake_cluster_module", "fake_cluster_session"])
def test_each_test_finds_a_fresh_state(fixture, number, request):
    cluster = request.getfixturevalue(fixture)
    assert os.environ["KUBECONFIG"] == cluster.kubeconfig
    assert create("a") == ["a"]

def test_factory(make_fake_cluster):
    first, second = make_fake_cluster(), make_fake_cluster(nodes=1)
    assert os.environ["KUBECONFIG"] == first.kubeconfig != second.kubeconfig
    second.nodes.stop("node-1")
    assert create("a") == ["a"]

def test_options_of_each_scope(fake_cluster, fake_cluster_module, fake_cluster_session):
    modes = [c.controllers["namespace"] for c in (fake_cluster, fake_cluster_module, fake_cluster_session)]
    assert modes == ["off", "off", "run"]
    assert fake_cluster_session.nodes  # of the ini option

@pytest.mark.anyio
async def test_anyio(fake_cluster_module):
    assert await asyncio.to_thread(create, "a") == ["a"]

@pytest.mark.asyncio
async def test_asyncio(fake_cluster):
    assert await asyncio.to_thread(create, "a") == ["a"]

@pytest.fixture
def anyio_backend():
    return "asyncio"

class TestUnit(FakeClusterTestCase, unittest.TestCase):
    fake_cluster_options = {"controllers": ()}

    def test_one(self):
        assert create("a") == ["a"]
        assert os.environ["KUBECONFIG"] == self.fake_cluster.kubeconfig

    test_two = test_one

class TestUnitAsync(FakeClusterTestCase, unittest.IsolatedAsyncioTestCase):
    fake_cluster_options = {"controllers": ()}

    async def test_one(self):
        assert await asyncio.to_thread(create, "a") == ["a"]

def test_context_manager():
    before = os.environ["KUBECONFIG"]
    with fake_cluster(controllers=()) as cluster:
        assert os.environ["KUBECONFIG"] == cluster.kubeconfig
        assert create("a") == ["a"]
    assert os.environ["KUBECONFIG"] == before

def test_asynchronous_context_manager():
    async def scenario():
        async with fake_cluster(controllers=()) as cluster:
            assert os.environ["KUBECONFIG"] == cluster.kubeconfig
            assert await asyncio.to_thread(create, "a") == ["a"]
    asyncio.run(scenario())
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write(client=CLIENT)
    project.environment["PYTHONPATH"] = str(project.folder)
    return project


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["-n0"], ["-n2"]], ids=["one-process", "xdist"])
def test_every_scope_in_every_kind_of_test(arguments: list[str], project: Project) -> None:
    ini = "[pytest]\nasyncio_default_fixture_loop_scope = function\nfake_cluster_options =\n    nodes = 1\n"
    (project.folder / "pytest.ini").write_text(ini)
    suite = SUITE if project.has("pytest_asyncio") else SUITE.replace("@pytest.mark.asyncio", "@pytest.mark.anyio")
    project.write(test_it=suite)
    done = project.pytest(*arguments)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "15 passed" in done.stdout


@pytest.mark.parametrize(
    ("marker", "sentence"),
    [
        ("3", "the marker fake_cluster takes options by name, as in fake_cluster(nodes=3), not 3"),
        (
            "node=3",
            "fake_cluster has no option \"node\" (did you mean 'nodes'?): it has port, authorization_mode, controllers, ",
        ),
        ("nodes=-3", "fake_cluster: "),
    ],
)
def test_a_wrong_marker_is_one_sentence(marker: str, sentence: str, project: Project) -> None:
    project.write(test_it=f"import pytest\n@pytest.mark.fake_cluster({marker})\ndef test_it(fake_cluster): pass\n")
    done = project.pytest("-q")
    assert done.returncode == 1
    assert f"\n{sentence}" in done.stdout
    assert "Traceback" not in done.stdout
    assert "plugin.py" not in done.stdout


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nodes", "fake_cluster_options: nodes: a line is `name = value`, such as 3, 'text' or ['a', 'b']"),
        (
            "nodes = x",
            "fake_cluster_options: nodes = x: \"x\" is not a Python literal, such as 3, 'text' or ['a', 'b']",
        ),
        ("node = 3", "fake_cluster has no option \"node\" (did you mean 'nodes'?): it has port, "),
    ],
)
def test_a_wrong_ini_option_is_one_sentence(line: str, sentence: str, project: Project) -> None:
    (project.folder / "pytest.ini").write_text(f"[pytest]\nfake_cluster_options =\n    {line}\n")
    project.write(test_it="def test_it(fake_cluster_session): pass\n")
    done = project.pytest("-q")
    assert done.returncode == 1
    assert f"\n{sentence}" in done.stdout
