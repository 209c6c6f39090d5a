"""The page finds causes: three stories of real clusters, read from the page alone; and the rules over single objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fakeapiserver import Cluster
from tests.ui.clients import NamedClient, deployment

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


@contextmanager
def live_page(browser: Any, cluster: Cluster, hash: str) -> Iterator[Any]:  # noqa: A002
    """The page of a running cluster, logged in. Fails at the end if it has logged an error."""
    context, errors = browser.new_context(viewport={"width": 1280, "height": 900}), []
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    link = cluster.page.link()
    page.goto(link)
    page.goto(f"{link.split('/ui/')[0]}/ui/{hash}")
    yield page
    context.close()
    assert errors == []


def problem(page: Any, *texts: str) -> Any:
    """The problem of the start view that has all the texts; Playwright waits for it."""
    found = page.locator(".problem")
    for text in texts:
        found = found.filter(has_text=text)
    found.first.wait_for()
    return found.first


def test_a_deployment_that_is_kept_from_its_pods_by_a_quota(browser: Any) -> None:
    with Cluster(nodes=2, ui=True) as cluster:
        admin = NamedClient(cluster, "setup")
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "compute"},
            "spec": {"hard": {"pods": "1"}},
        }
        admin.send("POST", "/api/v1/namespaces/default/resourcequotas", quota)
        cluster.settle()
        admin.send("POST", DEPLOYMENTS, deployment("web", 3))
        with live_page(browser, cluster, "#view=why") as page:
            found = problem(
                page,
                "Deployment default/web is not ready",
                "ResourceQuota compute limits pods to 1 (1 in use, 1 more asked for)",
            )
            assert "setup created this quota" in found.inner_text()
            # The quota is one click away, and so is the refused request.
            found.get_by_role("link", name="ResourceQuota compute").first.click()
            page.get_by_role("heading", name="ResourceQuota compute").wait_for()
            found.get_by_role("link", name="request").first.click()
            page.get_by_text("403").first.wait_for()
        with live_page(browser, cluster, "") as page:
            by_keyboard(page, "ResourceQuota compute")


def by_keyboard(page: Any, link: str) -> None:
    """Follows a link of the view "Why" with nothing but the keyboard."""
    page.locator(".timeline").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.get_by_role("link", name=link).first.wait_for()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == link:
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=link).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("heading", name=link).wait_for(state="hidden")


def test_an_operator_that_fights_with_an_autoscaler_over_replicas(browser: Any) -> None:
    with Cluster(nodes=2, ui=True, metrics=["resource"], stopped_at="2026-01-01T00:00:00Z") as cluster:
        operator = NamedClient(cluster, "web-operator")
        operator.send("POST", DEPLOYMENTS, deployment("web", 1, cpu="100m"))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        scaler = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "by-load"},
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": [metric]},
        }
        cluster.metrics.pod(selector="app=web", cpu="300m")
        operator.send("POST", AUTOSCALERS, scaler)
        for _ in range(4):
            cluster.clock.advance(20)
            cluster.settle()
            operator.merge(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}})
            cluster.settle()
        with live_page(browser, cluster, "#view=why") as page:
            found = problem(
                page, "back and forth", "spec.replicas of Deployment web", "web-operator", "horizontal-pod-autoscaler"
            )
            assert "HorizontalPodAutoscaler by-load scales Deployment web" in found.inner_text()
            found.get_by_role("link", name="Deployment web").first.click()
            page.get_by_role("tab", name="History").click()
            page.locator(".revision .changes").filter(has_text="spec.replicas").first.wait_for()


def test_a_finalizer_that_no_client_removes(browser: Any) -> None:
    with Cluster(nodes=2, ui=True) as cluster:
        installer = NamedClient(cluster, "installer")
        metadata = {"name": "settings", "finalizers": ["example.com/backup"]}
        installer.send("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        NamedClient(cluster, "cleaner").send("DELETE", f"{CONFIG_MAPS}/settings")
        with live_page(browser, cluster, "#view=why") as page:
            found = problem(
                page, "ConfigMap default/settings is being deleted, but still there", "finalizer example.com/backup"
            )
            text = found.inner_text()
            assert "installer created the object with it" in text
            assert "cleaner asked for the deletion" in text
            assert "No client watches configmaps" in text
            # Without the finalizer the problem is gone from the page, too.
            installer.merge(f"{CONFIG_MAPS}/settings", {"metadata": {"finalizers": None}})
            page.get_by_role("heading", name="Nothing looks wrong now").wait_for()
