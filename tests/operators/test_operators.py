"""The six commonest tests of an operator, for operators that are written with six client libraries.

The operator (`programs/`) gives every Website a ConfigMap of its own and a row in the ConfigMap `index`, which a finalizer removes. The
tests know nothing of the language that it is written in. Each fails when the fault that it is about is put into the operator.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.operators.running import BUILDERS, running

OPERATORS = [pytest.param(name, marks=() if name == "runtime" else pytest.mark.slow) for name in BUILDERS]
SECONDS = 20.0

pytestmark = [
    pytest.mark.fake_cluster(crds=str(Path(__file__).with_name("website.yaml"))),
    pytest.mark.timeout(900),  # the first build of an operator takes minutes
]


def website(title: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "shop"}, "spec": {"title": title}}


@pytest.fixture
def cluster(fake_cluster: Cluster) -> Cluster:
    fake_cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "index"}})
    return fake_cluster


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The command that starts an operator, by its name. An operator is built once."""
    return cache(lambda name: BUILDERS[name](name, tmp_path_factory.mktemp(name)))


@pytest.fixture(params=OPERATORS)
def operator(request: pytest.FixtureRequest, cluster: Cluster, commands: Callable[[str], list[str]]) -> Iterator[None]:
    with running(commands(request.param), cluster):
        yield


@pytest.mark.usefixtures("operator")
def test_a_website_gets_a_page(cluster: Cluster) -> None:
    [site] = cluster.apply(website("Shoes"))
    page = cluster.wait("configmap", "shop-page", jsonpath="{.data.title}=Shoes", timeout=SECONDS)
    assert page["data"] == {"title": "Shoes"}
    assert [owner["uid"] for owner in page["metadata"].get("ownerReferences", ())] == [site["metadata"]["uid"]]


@pytest.mark.usefixtures("operator")
def test_a_new_title_reaches_the_page(cluster: Cluster) -> None:
    cluster.apply(website("Shoes"))
    cluster.wait("website", "shop", jsonpath="{.status.title}=Shoes", timeout=SECONDS)
    cluster.apply(website("Boots"))
    cluster.wait("configmap", "shop-page", jsonpath="{.data.title}=Boots", timeout=SECONDS)


@pytest.mark.usefixtures("operator")
def test_a_deleted_website_leaves_the_index(cluster: Cluster) -> None:
    cluster.apply(website("Shoes"))
    cluster.wait("website", "shop", jsonpath="{.status.title}=Shoes", timeout=SECONDS)
    assert cluster.get("configmap", "index")["data"] == {"shop": "Shoes"}
    cluster.delete("website", "shop")
    cluster.wait("website", "shop", "delete", timeout=SECONDS)
    assert "shop" not in cluster.get("configmap", "index").get("data", {})


@pytest.mark.usefixtures("operator")
def test_a_conflict_is_tried_again(cluster: Cluster) -> None:
    with cluster.faults.add(verb="write", resource="configmaps", name="index", status=409, times=5) as conflict:
        cluster.apply(website("Shoes"))
        cluster.wait("configmap", "index", jsonpath="{.data.shop}=Shoes", timeout=SECONDS)
    assert conflict.hits == 5


@pytest.mark.usefixtures("operator")
def test_an_outage_is_survived(cluster: Cluster) -> None:
    cluster.outage("1s")
    cluster.apply(website("Shoes"))  # asks within the process
    cluster.wait("website", "shop", jsonpath="{.status.title}=Shoes", timeout=SECONDS)


@pytest.mark.usefixtures("operator")
def test_a_write_that_timed_out_is_not_repeated(cluster: Cluster) -> None:
    with cluster.faults.add(verb="create", resource="configmaps", status=504, when="after", times=1) as timeout:
        cluster.apply(website("Shoes"))
        cluster.wait("website", "shop", jsonpath="{.status.title}=Shoes", timeout=SECONDS)
    assert timeout.hits == 1
    assert len(cluster.list("configmaps", label_selector="site=shop")) == 1


# What each test says when the operator has the fault that the test is about.
BUGS: dict[str, tuple[Callable[[Cluster], None], type[BaseException], str]] = {
    "create": (test_a_website_gets_a_page, AssertionError, r"\[\] == \["),
    "update": (test_a_new_title_reaches_the_page, TimeoutError, "shop-page(.|\n)*Shoes"),
    "finalizer": (test_a_deleted_website_leaves_the_index, AssertionError, "'shop' not in"),
    "conflict": (test_a_conflict_is_tried_again, TimeoutError, "index"),
    "outage": (test_an_outage_is_survived, TimeoutError, "shop"),
    "timeout": (test_a_write_that_timed_out_is_not_repeated, AssertionError, "[2-9] == 1"),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("bug", BUGS)
def test_a_fault_in_the_operator_is_found(
    cluster: Cluster, commands: Callable[[str], list[str]], name: str, bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, error, said = BUGS[bug]
    command = commands(name)
    if error is TimeoutError:
        monkeypatch.setitem(globals(), "SECONDS", 5.0)
    with running(command, cluster, bug), pytest.raises(error, match=said):
        test(cluster)
