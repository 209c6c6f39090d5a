"""The page of a running cluster: records as they come, levers, the log-in's notice."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with its page. It is named before `browser` wherever both are, so that it ends after the browser's event loop."""
    with Cluster(ui=True, nodes=2, controllers=("deployment-controller", "replicaset-controller")) as cluster:
        yield cluster


@pytest.fixture
def opened(cluster: Cluster, browser: Any) -> Iterator[Callable[[str], Any]]:
    """opened(hash) logs a browser in and returns its page. Fails at the end of the test if the page has logged an error."""
    contexts, errors = [], []

    def open_page(view: str) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: errors.append(message.text) if "Content Security Policy" in message.text else None,
        )
        page.goto(cluster.page.link())
        page.locator(".nav a").first.wait_for()
        page.evaluate("hash => { location.hash = hash; }", f"view={view}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


def _outcome(page, text):
    page.locator(".lever-outcome", has_text=text).wait_for()


def test_records_arrive_while_the_page_is_open(opened, cluster):
    page = opened("timeline")
    page.locator(".timeline button.label").first.wait_for()
    cluster.apply({**CONFIG_MAP, "data": {"a": "1"}})
    page.locator(".timeline .label", has_text="cm/settings").wait_for()
    page.locator(".timeline .label", has_text="the test").wait_for()


def test_the_clock_is_stopped_advanced_and_started(opened, cluster):
    page = opened("levers")
    clock = page.locator(".lever-section", has=page.get_by_role("heading", name="Clock"))
    clock.get_by_role("button", name="Stop").click()
    _outcome(page, "Stop the clock: it is")
    assert cluster.clock.is_stopped
    before = cluster.clock.now()
    clock.get_by_label("Duration to advance by").fill("1h")
    clock.get_by_role("button", name="Advance", exact=True).click()
    _outcome(page, "Advance the clock: it is")
    assert cluster.clock.now() == pytest.approx(before + 3600)
    assert page.locator(".lever-lines").inner_text().count("1h") == 2
    clock.get_by_role("button", name="To the next due thing").click()
    _outcome(page, "Advance to what is due next: it is")
    page.locator(".scrubber .clock", has_text="stopped").wait_for()
    clock.get_by_role("button", name="Start").click()
    _outcome(page, "Start the clock: it is")
    assert not cluster.clock.is_stopped


def test_a_queue_shows_its_items_until_they_are_stepped(opened, cluster):
    cluster.controllers["replicaset-controller"] = "step"
    labels = {"app": "waits"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    cluster.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "waits"}, "spec": spec})
    cluster.settle()
    assert cluster.controllers.queue("replicaset-controller").ready == ["default/waits"]
    page = opened("levers")
    row = page.get_by_role("row", name="replicaset-controller")
    row.get_by_title("Show the items").click()
    row.get_by_text("default/waits").wait_for()
    row.get_by_role("button", name="Next item").click()
    row.get_by_text("The queue is empty.").wait_for()
    cluster.controllers["replicaset-controller"] = "run"


def test_what_the_server_refuses_is_said(opened):
    page = opened("levers")
    page.get_by_label("Duration to advance by").fill("soon")
    page.get_by_role("button", name="Advance", exact=True).click()
    page.locator(".lever-outcome.danger-text", has_text="soon").wait_for()


def test_a_controller_is_set_to_step_and_does_one_item(opened, cluster):
    page = opened("levers")
    modes = page.get_by_role("group", name="Mode of deployment-controller")
    modes.get_by_role("button", name="Step").click()
    _outcome(page, "Set deployment-controller to step: done.")
    assert cluster.controllers["deployment-controller"] == "step"
    assert 'cluster.controllers["deployment-controller"] = "step"' in page.locator(".lever-lines").inner_text()
    page.get_by_role("row", name="deployment-controller").get_by_role("button", name="Next item").click()
    _outcome(page, "deployment-controller processed")
    modes.get_by_role("button", name="Run").click()
    _outcome(page, "Set deployment-controller to run: done.")


def test_a_node_is_stopped_and_started(opened, cluster):
    page = opened("levers")
    node = page.locator(".lever-list li", has_text="node-1")
    node.get_by_role("button", name="Stop").click()
    _outcome(page, "Stop node-1: done.")
    node.get_by_role("button", name="Start").click()
    _outcome(page, "Start node-1: done.")


def test_a_fault_is_added_strikes_and_is_removed(opened, cluster):
    page = opened("levers")
    form = page.get_by_role("group", name="A fault to add")
    form.get_by_label("Verb").select_option("get")
    form.get_by_label("Resource").fill("configmaps")
    page.get_by_role("button", name="Add the fault").click()
    _outcome(page, "is added")
    assert [fault.hits for fault in cluster.faults.list()] == [0]
    assert (
        "fakeapiserver faults add verb=get resource=configmaps status=409 times=1"
        in page.locator(".lever-lines").inner_text()
    )
    page.locator(".lever-list li", has_text="verb=get").get_by_role("button", name="Remove").click()
    _outcome(page, "Remove fault 1: done.")
    assert cluster.faults.list() == []


def test_a_snapshot_is_restored(opened, cluster):
    cluster.apply({**CONFIG_MAP, "data": {"a": "before"}})
    page = opened("levers")
    page.get_by_role("button", name="Take a snapshot").click()
    _outcome(page, "is taken")
    cluster.apply({**CONFIG_MAP, "data": {"a": "after"}})
    page.get_by_role("button", name="Restore").last.click()
    _outcome(page, "Restore snapshot 1: done.")
    assert cluster.get("configmap", "settings")["data"] == {"a": "before"}


def test_a_fork_is_started_opened_and_ended(opened, cluster, expect):
    cluster.apply({**CONFIG_MAP, "data": {"a": "forked"}})
    page = opened("levers")
    page.get_by_role("button", name="Fork", exact=True).click()
    _outcome(page, "Fork 1 runs at https://127.0.0.1:")
    assert "other = cluster.fork()" in page.locator(".lever-lines").inner_text()
    with page.context.expect_page() as opening:
        page.get_by_role("button", name="Open the page of fork 1").click()
    fork = opening.value
    fork.locator(".nav a").first.wait_for()
    assert fork.url.partition("/ui/")[0] != page.url.partition("/ui/")[0]
    expect(fork).to_have_title(re.compile(r"^Fork of https://127\.0\.0\.1:\d+ at revision \d+ · Time line$"))
    fork.evaluate(
        "hash => { location.hash = hash; }", "view=objects&panel=object&object=configmaps/default/settings&tab=yaml"
    )
    fork.get_by_text("forked").first.wait_for()
    page.get_by_role("button", name="End fork 1").click()
    _outcome(page, "End fork 1: done.")


def test_the_state_is_downloaded(opened, tmp_path):
    page = opened("levers")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the state").click()
    download.value.save_as(tmp_path / "state.json")
    assert b'"kubernetes":"v1.37"' in (tmp_path / "state.json").read_bytes()


def test_settle_says_that_everything_is_at_rest(opened):
    page = opened("levers")
    page.get_by_role("button", name="Settle").click()
    _outcome(page, "Settled: every controller and every watch is at rest.")


def test_the_details_of_a_request_are_fetched(opened, cluster):
    cluster.apply({**CONFIG_MAP, "data": {"a": "details"}})
    page = opened("timeline")
    page.locator(".timeline .label", has_text="the test").wait_for()
    page.locator("canvas.marks").focus()
    for _ in range(8):
        page.keyboard.press("ArrowDown")
        if "the test" in page.locator(".timeline [aria-live]").inner_text():
            break
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.locator(".panel .request").wait_for()
    page.get_by_role("tab", name="Body").wait_for()


def test_a_page_says_that_its_recording_is_on_the_way(cluster, browser):
    context = browser.new_context()
    page = context.new_page()
    page.route("**/fakeapiserver/timeline?*", lambda route: None)
    page.goto(cluster.page.link())
    page.get_by_role("heading", name="Loading").wait_for()
    context.close()


def test_a_browser_that_is_not_logged_in_reads_how_to_log_in(cluster, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{cluster.page.link().partition('/ui/')[0]}/ui/")
    page.get_by_role("heading", name="You are not logged in").wait_for()
    page.get_by_text("fakeapiserver ui", exact=False).first.wait_for()
    context.close()
