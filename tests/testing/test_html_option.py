"""`--fake-cluster-html`: a page about each failed test, named at the end of pytest's output."""

import json
import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
SUITE = """
import pytest
pytestmark = pytest.mark.fake_cluster(controllers=())
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2hunter2"}}

def made(name): return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

def test_passes(fake_cluster): fake_cluster.apply(made("a"))

@pytest.mark.parametrize("value", ["x/y"])
def test_fails(fake_cluster, value):
    fake_cluster.apply(made("only-here"))
    fake_cluster.apply(SECRET)
    assert value == "</script><b>"

def test_first(fake_cluster_module): fake_cluster_module.apply(made("of-the-first"))

def test_second(fake_cluster_module): assert not fake_cluster_module.apply(made("of-the-second"))
"""
_RECORDING = re.compile(r'<script type="application/json" id="recording">(.*?)</script>', re.DOTALL)


@pytest.fixture(params=[("-p", "no:xdist"), ("-n", "2")], ids=["alone", "xdist"])
def output(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> str:
    pytester.makepyfile(test_suite=SUITE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--fake-cluster-html=pages", *request.param)
    result.assert_outcomes(passed=2, failed=2)
    return result.stdout.str()


def test_each_failed_test_has_a_page(output: str, pytester: pytest.Pytester) -> None:
    section = output.partition("pages about fake clusters")[2]
    paths = sorted(re.findall(r"^pages.*html$", section, re.MULTILINE))
    assert paths == sorted(str(path.relative_to(pytester.path)) for path in pytester.path.glob("pages/*"))
    fails, second = (recording(pytester.path / path) for path in paths)
    assert (fails["title"], second["title"]) == ("test_suite.py::test_fails[x/y]", "test_suite.py::test_second")
    assert """assert 'x/y' == '</script><b>\'""" in fails["failure"]
    assert {"only-here"} < names(fails)
    assert names(second) & {"of-the-first", "of-the-second"} == {"of-the-second"}
    text = json.dumps(fails)
    assert '"password": "<14 bytes>"' in text
    assert "hunter2" not in text.replace(fails["failure"], "")


def recording(path: Path) -> dict[str, object]:
    (text,) = _RECORDING.findall(path.read_text())
    found: dict[str, object] = json.loads(text)
    return found


def names(recording: dict[str, object]) -> set[str]:
    states = recording["states"]
    assert isinstance(states, dict)
    return {state["object"]["metadata"]["name"] for state in states.values()}


def test_without_the_option_nothing_is_written(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_suite=SUITE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-k", "second")
    assert "pages about" not in result.stdout.str()
    assert [path.name for path in pytester.path.glob("*.html")] == []
