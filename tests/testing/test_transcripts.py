"""`assert_transcript` and `--update-transcripts`: requests are compared with a file."""

from pathlib import Path

import pytest

from fakeapiserver import Cluster
from fakeapiserver.testing import transcripts
from tests.cluster.test_faults import MAPS, Client

pytest_plugins = ["pytester"]
UID = "0ac54a34-aba4-429b-b1db-e832acc840e5"
SUITE = """
import pytest
@pytest.mark.parametrize("text", ["one\\ntwo\\n"])
def test_it(assert_transcript, text): assert_transcript(text, "transcripts/it.txt")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder/requests.txt"


def failure(text: str, path: Path) -> str:
    with pytest.raises(AssertionError) as failed:
        transcripts.check(text, path, update=False)
    return str(failed.value)


def test_lines() -> None:
    with Cluster(controllers=()) as cluster:
        client = Client(cluster)
        client.ask("POST", MAPS, {"metadata": {"name": UID}}, agent="my-operator/1.2 (linux)")
        client.ask(
            "PATCH", f"{MAPS}/{UID}", {"data": {"a": "b"}}, "application/merge-patch+json", agent="my-operator/1.2"
        )
        client.ask("GET", "/apis/apps/v1/deployments", agent="")
        client.ask("GET", "/apis/apps/v1/namespaces/default/deployments/web/scale", agent="kubectl")
        client.ask("GET", "/version")
        with cluster.faults.add(verb="get", resource="nodes", status=503):
            client.ask("GET", "/api/v1/nodes/node-1")
        found = cluster.requests.all().transcript()
    assert found.splitlines() == [
        "my-operator create configmaps default/<uid> -> 201",
        "my-operator patch configmaps default/<uid> -> 200",
        "(no user agent) list deployments.apps -> 200",
        "kubectl get deployments.apps/scale default/web -> 404 NotFound",
        "test get /version -> 200",
        "test get nodes node-1 -> 503 by fault 1 (verb=get resource=nodes status=503)",
    ]


def test_a_file_that_is_missing(path: Path) -> None:
    text = failure("one\n", path)
    assert text == f"{path} doesn't exist: write it with --update-transcripts\nThe requests:\none\n"
    assert not path.exists()


def test_an_update_and_the_same_again(path: Path) -> None:
    transcripts.check("one\ntwo", path, update=True)
    assert path.read_text() == "one\ntwo\n"
    transcripts.check("one\ntwo\n", path, update=False)


def test_a_difference(path: Path) -> None:
    transcripts.check("one\ntwo\nthree\n", path, update=True)
    assert failure("one\nthree\nfour\n", path).splitlines() == [
        "the requests differ from requests.txt; --update-transcripts writes it again",
        "--- requests.txt",
        "+++ the requests of this run",
        "@@ -1,3 +1,3 @@",
        " one",
        "-two",
        " three",
        "+four",
    ]
    long = failure("".join(f"{number}\n" for number in range(500)), path)
    assert len(long.splitlines()) == 62


def test_something_without_requests(path: Path) -> None:
    with pytest.raises(ValueError, match="a transcript is made of requests such as"):
        transcripts.check(3, path, update=False)  # type: ignore[arg-type]


def test_the_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    options = ("-p", "no:xdist", "-p", "no:cacheprovider")
    pytester.runpytest(*options).assert_outcomes(failed=1)
    pytester.runpytest(*options, "--update-transcripts").assert_outcomes(passed=1)
    assert (pytester.path / "transcripts/it.txt").read_text() == "one\ntwo\n"
    pytester.runpytest(*options).assert_outcomes(passed=1)
