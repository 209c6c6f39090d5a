"""Objects in the page of a running cluster: tables, filters, keys, history, YAML, graph; and markup, which stays text."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from tests.ui.clients import NamedClient, deployment

CORE: Final = "/api/v1/namespaces/default"
MARKUP: Final = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>\'"&lt;b&gt;'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, ui=True) as cluster:
        client = NamedClient(cluster, "setup")
        client.send("POST", "/apis/apps/v1/namespaces/default/deployments", deployment("web", 2))
        client.send(
            "POST",
            f"{CORE}/services",
            {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
        )
        cluster.settle()
        yield cluster


@pytest.fixture
def page(browser: Any, cluster: Cluster) -> Iterator[Any]:
    context, errors = browser.new_context(viewport={"width": 1280, "height": 800}), []
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(cluster.page.link())
    page.locator(".nav").wait_for()
    yield page
    assert page.evaluate("window.ran") is None
    context.close()
    assert errors == []


def show(page: Any, **state: str) -> None:
    """Moves the page to a view as a link does."""
    page.evaluate("(hash) => { location.hash = hash; }", "&".join(f"{name}={value}" for name, value in state.items()))


def names(page: Any) -> list[str]:
    return list(page.locator(".row .name").all_inner_texts())


def test_a_table_has_the_columns_of_kubectl_and_follows_the_cluster(page: Any, cluster: Cluster) -> None:
    client = NamedClient(cluster, "table")
    show(page, view="objects", kind="pods", ns="default")
    page.get_by_role("row").filter(has_text=re.compile("web-.*1/1.*Running")).first.wait_for()
    headers = [text.strip() for text in page.get_by_role("columnheader").all_inner_texts()]
    assert headers[1:8] == ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"]
    show(page, view="objects", kind="configmaps", ns="default")
    client.send("POST", f"{CORE}/configmaps", {"metadata": {"name": "new", "labels": {"app": "a"}}, "data": {"k": "1"}})
    page.get_by_role("row").filter(has_text="new").wait_for()
    client.send("DELETE", f"{CORE}/configmaps/new")
    page.get_by_role("row").filter(has_text="new").wait_for(state="detached")
    # The moment before the deletion still shows it.
    page.get_by_role("button", name="Previous revision").click()
    page.get_by_role("row").filter(has_text="new").wait_for()


@pytest.mark.parametrize(
    ("text", "found"),
    [("app=web", 2), ("app=db", 0), ("status.phase=Running", 2), ("web-", 2), ("node-1", 2), ("metadata.name=web", 0)],
)
def test_the_filter(page: Any, text: str, found: int) -> None:
    show(page, view="objects", kind="pods", ns="default")
    page.locator(".row").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type(text)
    page.locator(".count", has_text="2 objects" if found == 2 else f"{found} of 2").wait_for()
    assert len(names(page)) == found


def test_keys_choose_and_open_an_object(page: Any) -> None:
    show(page, view="objects", kind="pods", ns="default")
    page.locator(".row").nth(1).wait_for()
    second = names(page)[1]
    page.locator(".table-body").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("heading", name=f"Pod {second}").wait_for()
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".owner-chip").filter(has_text="kubelet").wait_for()
    page.keyboard.press("ArrowRight")
    page.locator(".revision").filter(has_text="replicaset-controller created it").wait_for()
    page.locator(".revision .changes").filter(has_text="status.phase").first.wait_for()


def test_an_object_shows_its_relatives_conditions_and_events(page: Any) -> None:
    show(page, view="objects", kind="deployments.apps", panel="object", object="deployments.apps/default/web")
    page.locator(".family").filter(has_text=re.compile("Deployment.*ReplicaSet.*Pod", re.DOTALL)).wait_for()
    page.locator(".conditions li").filter(has_text="MinimumReplicasAvailable").wait_for()
    page.locator(".events li").filter(has_text="ScalingReplicaSet").wait_for()


def test_the_graph_leads_to_objects_and_has_a_list(page: Any) -> None:
    show(page, view="graph", ns="default")
    node = page.get_by_role("link", name=re.compile(r"^Deployment · \S+ web$"))
    node.wait_for()
    node.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="ReplicaSet web-").wait_for()
    page.get_by_role("button", name="List").click()
    page.locator(".graph-list li").filter(has_text="Service").filter(has_text="selects").first.wait_for()
    page.get_by_role("button", name="Who can").click()
    page.get_by_role("combobox", name="Resource").select_option("pods")
    page.get_by_role("cell", name="Group system:masters").wait_for()


def test_markup_stays_text(page: Any, cluster: Cluster) -> None:
    client = NamedClient(cluster, "<b>client</b>")
    metadata = {"name": "hostile", "annotations": {"note": MARKUP}, "finalizers": ["example.com/x"]}
    client.send("POST", f"{CORE}/configmaps", {"metadata": metadata, "data": {"k": MARKUP}})
    client.merge(f"{CORE}/configmaps/hostile", {"data": {"k": f"{MARKUP}2", "m": f"{MARKUP}\n{MARKUP}\n"}})
    involved = {"kind": "ConfigMap", "namespace": "default", "name": "hostile"}
    event = {
        "metadata": {"name": "hostile.1"},
        "involvedObject": involved,
        "message": MARKUP,
        "reason": MARKUP[:100],
        "type": MARKUP[:20],
    }
    assert client.send("POST", f"{CORE}/events", event)["kind"] == "Event"
    client.send("DELETE", f"{CORE}/configmaps/hostile")
    for tab, text in {"": "onerror", "yaml": "onerror", "history": "onerror"}.items():
        show(page, view="objects", kind="events", panel="object", tab=tab, object="configmaps/default/hostile")
        page.locator("#object-part").filter(has_text=text).wait_for()
    page.locator(".row").filter(has_text="onerror").first.wait_for()
    for view in ("why", "graph", "timeline"):
        show(page, view=view, ns="default", panel="")
        page.locator("#view").filter(has_text="hostile" if view != "timeline" else "").wait_for()
    assert page.locator("#view img, #object-part img").count() == 0
    client.merge(f"{CORE}/configmaps/hostile", {"metadata": {"finalizers": None}})


@pytest.mark.slow
def test_ten_thousand_objects_make_few_rows(open_page: Any, large: Any) -> None:
    page = open_page(large, "#view=objects&kind=pods")
    page.locator(".count", has_text="8,000 objects").wait_for()
    assert page.locator(".row").count() < 80
    page.keyboard.press("/")
    page.keyboard.type("web-9990-")
    page.locator(".count", has_text="8 of 8,000").wait_for()
