"""The live page over a network that is cut: it goes on after the last record that it has, or begins again if later ones are forgotten."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from conformance.robustness.proxy import Proxy
from fakeapiserver import Cluster
from tests.evidence.timeline.recorded import recorder

HASH = "#view=objects&kind=configmaps&ns=default"


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(ui=True, controllers=()) as cluster:
        yield cluster


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    """The network between the page and its server."""
    proxy = Proxy(int(urlsplit(cluster.page.link()).port or 0))
    yield proxy
    proxy.close()


@pytest.fixture
def page(cluster: Cluster, proxy: Proxy, browser: Any, expect: Any) -> Iterator[Any]:
    """The page, which has one object and is live."""
    context = browser.new_context()
    page = context.new_page()
    cluster.apply(config_map("before"))
    link = urlsplit(cluster.page.link())
    page.goto(f"{proxy.url}{link.path}?{link.query}")
    page.goto(f"{proxy.url}/ui/{HASH}")
    expect(page.get_by_role("button", name="Live")).to_be_visible()
    expect(page.get_by_text("before", exact=True).first).to_be_visible()
    yield page
    context.close()


def test_what_was_missed_arrives_later(cluster: Cluster, proxy: Proxy, page: Any, expect: Any) -> None:
    proxy.cut()
    expect(page.get_by_role("button", name="Connection lost")).to_be_visible()
    cluster.apply(config_map("meanwhile"))
    cluster.delete("configmap", "before", "default")
    proxy.mend()
    expect(page.get_by_role("button", name="Live")).to_be_visible()
    expect(page.get_by_text("meanwhile", exact=True).first).to_be_visible()
    expect(page.get_by_text("before", exact=True)).to_have_count(0)


def test_what_is_forgotten_meanwhile_is_not_shown(cluster: Cluster, proxy: Proxy, page: Any, expect: Any) -> None:
    proxy.cut()
    expect(page.get_by_role("button", name="Connection lost")).to_be_visible()
    recorder(cluster).recording._most = 100
    for number in range(150):
        cluster.apply(config_map(f"made-{number % 10}") | {"data": {"turn": str(number)}})
    oldest = recorder(cluster).recording.oldest
    assert oldest > 0
    proxy.mend()
    expect(page.get_by_role("button", name="Live")).to_be_visible()
    expect(page.get_by_text("made-9", exact=True).first).to_be_visible()
    expect(page.get_by_text("before", exact=True).first).to_be_visible()
    slider = page.get_by_role("slider", name="Moment, as a revision")
    assert int(slider.get_attribute("min")) >= oldest


def test_another_server_in_its_place_asks_for_a_log_in(proxy: Proxy, page: Any, expect: Any) -> None:
    with Cluster(ui=True, controllers=()) as other:
        proxy._to = int(urlsplit(other.page.link()).port or 0)
        proxy.cut()
        proxy.mend()
        expect(page.get_by_role("alert")).to_contain_text("You are not logged in any more")
        # A link that is opened in another tab logs this one in, too: it shows the other server.
        tab = page.context.new_page()
        link = urlsplit(other.page.link())
        tab.goto(f"{proxy.url}{link.path}?{link.query}")
        expect(page.get_by_role("button", name="Live")).to_be_visible()
        expect(page.get_by_role("alert")).to_be_hidden()
        expect(page.get_by_text("before", exact=True)).to_have_count(0)
